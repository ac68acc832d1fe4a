// The open stdin of an entry in the mailbox. It is stored once, in order, bounded and fenced, and removed with its
// entry.
import {
  cancel,
  close,
  finish,
  type InputWrite,
  type Owner,
  readInput,
  rerun,
  type Submission,
  submit,
  take,
  writeInput,
} from '@shellfleet/mailbox';
import { encodeWakeUp, inputKey, LIMITS, recordKey, type SessionKeys, wakeUpsChannel } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createHostileRedis } from '../support/hostile-redis.ts';
import {
  acquireFor,
  connectTestRedis,
  finishAs,
  newKeys,
  newSubmission,
  openSession,
  own,
  type TestRedis,
} from '../support/mailbox-session.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { createRandom } from '../support/random.ts';
import { until } from '../support/until.ts';

let server: TestRedis;
let redis: Redis;
let keys: SessionKeys;
let generation: string;
let owner: Owner;
let number = 0;

beforeAll(async () => {
  server = await connectTestRedis();
  redis = server.redis;
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  keys = newKeys();
  generation = await openSession(redis, keys);
});

/** Submits an entry with an open stdin, which waits. */
async function accepted(input: 'open' | 'streamed' | 'none' = 'open', rest: Partial<Submission> = {}): Promise<string> {
  const submission = newSubmission(generation, { ...rest, ...(input === 'none' ? {} : { input }) });
  await submit(redis, keys, submission);
  return submission.entryId;
}

/** Starts an entry with an open stdin. */
async function running(input: 'open' | 'streamed' = 'open'): Promise<string> {
  const entryId = await accepted(input);
  owner = await own(redis, keys);
  expect(await take(owner)).toMatchObject({ type: 'started', entry: { id: entryId } });
  return entryId;
}

const write = (entryId: string, given: Partial<InputWrite> & { text?: string } = {}) => {
  const { text, ...rest } = given;
  // Sealed text is longer than its content. The script trusts the number of bytes that the writer states.
  const chunks = text === undefined ? [] : [{ sealed: `sealed ${text}`, bytes: Buffer.byteLength(text) }];
  return writeInput(redis, keys, entryId, { writer: 'w1', number: ++number, chunks, ...rest });
};
const read = (entryId: string, taken = 0, from = taken, mostBytes = 1_000_000) =>
  readInput(owner, entryId, { taken, from, mostBytes });
const nothing = { type: 'read', lapsedMs: 0, chunks: [], signed: '' };

describe('a write to stdin', () => {
  test('keeps chunks in the order of arrival, even before the entry starts', async () => {
    const entryId = await accepted();
    expect(await write(entryId, { text: 'abc' })).toEqual({ type: 'written', offset: 3 });
    owner = await own(redis, keys);
    await take(owner);
    expect(await write(entryId, { text: 'de', writer: 'w2' })).toEqual({ type: 'written', offset: 5 });
    expect(await write(entryId, { text: 'f' })).toEqual({ type: 'written', offset: 6 });
    expect(await read(entryId)).toEqual({
      ...nothing,
      written: 6,
      chunks: [
        { end: 3, sealed: 'sealed abc' },
        { end: 5, sealed: 'sealed de' },
        { end: 6, sealed: 'sealed f' },
      ],
    });
  });

  test('stores several chunks in one step', async () => {
    const entryId = await running();
    const chunks = ['ab', 'c', 'def'].map((text) => ({ sealed: text, bytes: text.length }));
    expect(await write(entryId, { chunks, closes: 'end' })).toEqual({ type: 'written', offset: 6 });
    const stored = [
      { end: 2, sealed: 'ab' },
      { end: 3, sealed: 'c' },
      { end: 6, sealed: 'def' },
    ];
    expect(await read(entryId)).toEqual({ ...nothing, written: 6, closed: 'end', chunks: stored });
  });

  test('is stored once if it arrives twice, simultaneously or late', async () => {
    const entryId = await running();
    const first = { writer: 'w1', number: 1, text: 'abc' };
    await Promise.all([write(entryId, first), write(entryId, first)]);
    await write(entryId, { writer: 'w2', number: 1, text: 'X' });
    await write(entryId, { writer: 'w1', number: 2, text: 'def' });
    expect(await write(entryId, first)).toEqual({ type: 'written', offset: 7 });
    const last = { writer: 'w1', number: 3, closes: 'end' } as const;
    expect(await write(entryId, last)).toEqual({ type: 'written', offset: 7 });
    expect(await write(entryId, last)).toEqual({ type: 'written', offset: 7 });
    expect(await write(entryId, first)).toEqual({ type: 'written', offset: 7 });
    const chunks = [
      { end: 3, sealed: 'sealed abc' },
      { end: 4, sealed: 'sealed X' },
      { end: 7, sealed: 'sealed def' },
    ];
    expect(await read(entryId)).toEqual({ ...nothing, written: 7, closed: 'end', chunks });
  });

  test('is refused after the end of stdin', async () => {
    const entryId = await running();
    await write(entryId, { text: 'abc', closes: 'end' });
    expect(await write(entryId, { text: 'd' })).toEqual({ type: 'closed' });
    expect(await write(entryId, { closes: 'end' })).toEqual({ type: 'closed' });
  });

  test('can state the offset of its end, so that a signed end is not misplaced', async () => {
    const entryId = await running();
    await write(entryId, { text: 'abc' });
    expect(await write(entryId, { closes: 'end', offset: 0, signed: 'at 0' })).toEqual({
      type: 'misplaced',
      offset: 3,
    });
    expect(await write(entryId, { closes: 'end', offset: 3, signed: 'at 3' })).toEqual({ type: 'written', offset: 3 });
    expect(await read(entryId)).toMatchObject({ written: 3, closed: 'end', signed: 'at 3' });
    await finish(owner, entryId, finishAs('success'));
    expect(await write(entryId, { text: 'd' })).toEqual({ type: 'ended' });
    expect(await write(await accepted('none'), { text: 'd' })).toEqual({ type: 'not-open' });
    expect(await write('01JZZZZZZZZZZZZZZZZZZZZZZZ', { text: 'd' })).toEqual({ type: 'unknown' });
  });

  test('is refused for other writers of a streamed stdin and after a gap', async () => {
    const entryId = await running('streamed');
    expect(await write(entryId, { text: 'abc', offset: 0 })).toEqual({ type: 'written', offset: 3 });
    expect(await write(entryId, { text: 'd', writer: 'w2' })).toEqual({ type: 'not-open' });
    expect(await write(entryId, { closes: 'end', writer: 'w2' })).toEqual({ type: 'not-open' });
    expect(await write(entryId, { text: 'd', offset: 9 })).toEqual({ type: 'misplaced', offset: 3 });
    expect(await write(await accepted('open'), { text: 'd', offset: 0 })).toEqual({ type: 'not-open' });
    expect(await read(entryId)).toMatchObject({ written: 3, chunks: [{ end: 3 }] });
  });

  test('is refused by a full Redis, which accepts an end and lease renewals', async () => {
    await using full = await startOwnRedis();
    const ownKeys = newKeys();
    const entry = newSubmission(await openSession(full.redis, ownKeys), { input: 'streamed' });
    await submit(full.redis, ownKeys, entry);
    const call = { writer: 'w1', number: 1, offset: 0, leaseMs: 60_000 };
    const send = (given: Partial<InputWrite>) => writeInput(full.redis, ownKeys, entry.entryId, { ...call, ...given });
    const lease = async () => Number(await full.redis.hget(recordKey(ownKeys, entry.entryId), 'lease'));
    await full.redis.config('SET', 'maxmemory', '1');
    const before = await lease();
    await expect(send({ chunks: [{ sealed: 'x', bytes: 1 }] })).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    expect(await lease()).toBe(before);
    expect(await send({})).toEqual({ type: 'written', offset: 0 });
    expect(await lease()).toBeGreaterThan(before);
    await full.redis.config('SET', 'maxmemory', '0');
    // The number 1 is not used up: Redis refused the first chunk, and the renewal with this number stored no chunk.
    expect(await send({ chunks: [{ sealed: 'x', bytes: 1 }] })).toEqual({ type: 'written', offset: 1 });
    await full.redis.config('SET', 'maxmemory', '1');
    expect(await send({ number: 2, offset: 1, closes: 'end' })).toEqual({ type: 'written', offset: 1 });
  });

  test('returns `full` when 4 MiB are unread', async () => {
    const entryId = await running();
    const bytes = LIMITS.inputChunkBytes;
    const chunk = { sealed: 'x', bytes };
    const fitting = LIMITS.inputUnreadBytes / bytes;
    for (let i = 1; i <= fitting; i += 1)
      expect(await write(entryId, { chunks: [chunk] })).toEqual({ type: 'written', offset: i * bytes });
    const waiting = { writer: 'w1', number: ++number, chunks: [chunk, chunk] };
    expect(await write(entryId, waiting)).toEqual({ type: 'full' });
    const heard: string[] = [];
    const listener = redis.duplicate();
    listener.on('message', (_, message: string) => heard.push(message));
    await listener.subscribe(keys.feed);
    // Either both chunks are stored or none. There is room for one.
    await read(entryId, bytes);
    expect(await write(entryId, waiting)).toEqual({ type: 'full' });
    await read(entryId, 2 * bytes);
    expect(await write(entryId, waiting)).toMatchObject({ type: 'written' });
    await until(
      () => heard,
      (all) => all.length > 0,
    );
    expect(new Set(heard)).toEqual(new Set(['input']));
    listener.disconnect();
  });

  test('returns `full` when 4,096 chunks are unread, however small', async () => {
    const entryId = await running();
    for (let i = 0; i < LIMITS.inputUnreadChunks; i += 512)
      await Promise.all(Array.from({ length: 512 }, () => write(entryId, { text: 'x' })));
    expect(await write(entryId, { text: 'x' })).toEqual({ type: 'full' });
    await read(entryId, 1);
    expect(await write(entryId, { text: 'x' })).toEqual({ type: 'written', offset: 4_097 });
  });

  test('wakes the host of a running entry, and nobody for a waiting one', async () => {
    const received: string[] = [];
    const listener = redis.duplicate();
    listener.on('message', (_, message: string) => received.push(message));
    await listener.subscribe(wakeUpsChannel(keys.namespace, keys.tenant, 'h1'));
    const entryId = await running();
    const later = await accepted();
    await write(later, { text: 'x' });
    await write(entryId, { text: 'x' });
    await write(entryId, { closes: 'end' });
    await until(
      () => received,
      (all) => all.length >= 2,
    );
    const wakeUp = encodeWakeUp({ type: 'input', tenant: keys.tenant, session: keys.session });
    expect(received).toEqual([wakeUp, wakeUp]);
    listener.disconnect();
  });
});

describe('a read of stdin', () => {
  test('removes whole chunks that the shell was given, and returns what follows', async () => {
    const entryId = await running();
    for (const text of ['abc', 'defg', 'hi']) await write(entryId, { text });
    expect(await read(entryId, 0, 0, 1)).toMatchObject({ chunks: [{ end: 3 }] });
    expect(await read(entryId, 0, 0, 4)).toMatchObject({ chunks: [{ end: 3 }, { end: 7 }] });
    expect(await read(entryId, 0, 3, 0)).toMatchObject({ chunks: [] });
    // The offset is in the middle of a chunk. The chunk stays, because an adopter needs the rest of it.
    expect(await read(entryId, 5, 5)).toMatchObject({ chunks: [{ end: 7 }, { end: 9 }] });
    expect(await redis.xlen(inputKey(keys, entryId))).toBe(2);
    expect(await read(entryId, 3, 7)).toMatchObject({ written: 9, chunks: [{ end: 9 }] });
    expect(await redis.hget(recordKey(keys, entryId), 'taken')).toBe('5');
    expect(await read(entryId, Number.MAX_SAFE_INTEGER, 9)).toEqual({ ...nothing, written: 9 });
    expect(await redis.xlen(inputKey(keys, entryId))).toBe(0);
    expect(await redis.hget(recordKey(keys, entryId), 'taken')).toBe('9');
  });

  test('is fenced, and refused for an entry that does not run', async () => {
    const entryId = await running();
    const waiting = await accepted();
    expect(await read(waiting)).toEqual({ type: 'not-running' });
    const next = await acquireFor(redis, keys, 'h2');
    expect(await readInput(next, entryId, { taken: 0, from: 0, mostBytes: 1 })).toEqual({ type: 'fenced' });
    await finish(owner, entryId, finishAs('success', true));
    expect(await read(entryId)).toEqual({ type: 'not-running' });
    expect(await read(waiting)).toEqual({ ...nothing, written: 0 });
  });

  test("reports for how long the submitter's lease has been expired", async () => {
    const entryId = await running('streamed');
    await write(entryId, { offset: 0, leaseMs: 60_000 });
    expect(await read(entryId)).toEqual({ ...nothing, written: 0 });
    await write(entryId, { offset: 0, leaseMs: 0 });
    const lapsed = await until(
      () => read(entryId),
      (answer) => answer.type === 'read' && answer.lapsedMs > 0,
    );
    expect(lapsed).toEqual({ ...nothing, written: 0, lapsedMs: expect.any(Number) });
    await write(entryId, { offset: 0, closes: 'end' });
    expect(await read(entryId)).toEqual({ ...nothing, written: 0, closed: 'end' });
  });

  test('finds a lease of the submitter from the acceptance of a streamed entry on', async () => {
    const entryId = await accepted('streamed');
    const [at, lease] = await redis.hmget(recordKey(keys, entryId), 'acceptedAt', 'lease');
    expect(Number(lease) - Number(at)).toBe(LIMITS.inputLeaseMs);
  });
});

describe('the calls about stdin', () => {
  test('deliver each write once, whole and in order, whatever arrives twice', async () => {
    const trials = Array.from({ length: 8 }, (_, index) => trial(Date.now() + index));
    expect(await Promise.all(trials)).toEqual(trials.map(() => []));
  });
});

/** Runs two writers and a host on a connection on which every call arrives twice. Returns what is wrong. */
async function trial(seed: number): Promise<string[]> {
  const random = createRandom(seed);
  const ownKeys = newKeys();
  const entry = newSubmission(await openSession(redis, ownKeys), { input: 'open' });
  await submit(redis, ownKeys, entry);
  const late: (() => Promise<unknown>)[] = [];
  const hostile = createHostileRedis(redis, { random, crash: 0, late, look: async () => {} });
  const host = { ...(await own(redis, ownKeys)), redis: hostile };
  await take(host);
  const problems: string[] = [];
  const WRITES = 30;
  const writer = async (name: string) => {
    for (let call = 1; call <= WRITES; call += 1) {
      const pieces = Array.from({ length: 1 + random.below(3) }, (_, piece) => `${name} ${call} ${piece}`);
      // The stated size is large, so that there is not always room.
      const chunks = pieces.map((sealed) => ({
        sealed: `${sealed} ${pieces.length}`,
        bytes: 1 + random.below(300_000),
      }));
      let written: Awaited<ReturnType<typeof writeInput>>;
      do written = await writeInput(hostile, ownKeys, entry.entryId, { writer: name, number: call, chunks });
      while (written.type === 'full');
      if (written.type !== 'written') problems.push(`${name} ${call} was ${written.type}`);
    }
  };
  const seen: string[] = [];
  let over = false;
  const reader = async () => {
    for (let from = 0, taken = 0; ; ) {
      const answer = await readInput(host, entry.entryId, { taken, from, mostBytes: random.below(600_000) });
      if (answer.type !== 'read') throw new Error(answer.type);
      for (const { end, sealed } of answer.chunks) {
        if (end <= from) problems.push(`${sealed} ends at ${end}, behind ${from}`);
        seen.push(sealed);
        from = end;
      }
      // An adopter continues after the bytes that were taken, and receives later bytes again.
      if (random.chance(0.8)) taken = from;
      if (over && from === answer.written) return;
    }
  };
  const reading = reader();
  await Promise.all([writer('a'), writer('b')]);
  over = true;
  await reading;
  for (const call of late.splice(0)) await call();
  for (const name of ['a', 'b']) {
    const calls = [...new Set(seen.filter((text) => text.startsWith(name)).map((text) => text.split(' ')[1]))];
    if (calls.join() !== Array.from({ length: WRITES }, (_, i) => i + 1).join()) problems.push(`${name}: ${calls}`);
  }
  seen.forEach((text, index) => {
    const [name, call, piece, of] = text.split(' ');
    const next = Number(piece) + 1 === Number(of) ? undefined : `${name} ${call} ${Number(piece) + 1} ${of}`;
    if (next !== undefined && seen[index + 1] !== next) problems.push(`${text} is followed by ${seen[index + 1]}`);
  });
  if (new Set(seen).size !== seen.length) problems.push('a chunk was read twice');
  return problems;
}

describe('the input of an entry', () => {
  const leftOf = async (entryId: string) => [
    await redis.exists(inputKey(keys, entryId)),
    await redis.hmget(recordKey(keys, entryId), 'input', 'written', 'taken', 'wrote:w1'),
  ];
  const gone = [0, [null, null, null, null]];

  test('is removed when the entry ends in any way', async () => {
    const finished = await running();
    const cancelled = await accepted();
    const closed = await accepted();
    for (const entryId of [finished, cancelled, closed]) await write(entryId, { text: 'secret' });
    expect(await leftOf(finished)).toEqual([1, ['open', '6', null, expect.any(String)]]);
    await finish(owner, finished, finishAs('failure'));
    await cancel(redis, keys, cancelled, 'no');
    await close(redis, keys, generation, false);
    expect([await leftOf(finished), await leftOf(cancelled), await leftOf(closed)]).toEqual([gone, gone, gone]);
  });

  test('prevents a second run if it is open', async () => {
    for (const input of ['open', 'none'] as const) {
      const entryId = await accepted(input, { retry: 'idempotent' });
      owner = await own(redis, keys);
      await take(owner);
      const next = await own(redis, keys, 'h2');
      expect(await rerun(next, { id: entryId, starts: 1 })).toMatchObject({
        type: input === 'open' ? 'refused' : 'restarted',
      });
      await finish(next, entryId, finishAs('success'));
    }
  });
});
