import {
  adopt,
  announce,
  append,
  close,
  finish,
  note,
  type Owner,
  open,
  release,
  rerun,
  submit,
  take,
} from '@shellfleet/mailbox';
import { answerKey, recordKey, type SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { idsOf, outcomesOf, outputOf, readEvents } from '../support/invariants.ts';
import {
  atTheStart,
  connectTestRedis,
  finishAs,
  newKeys,
  newSubmission,
  openSession,
  own,
  pieceAfter,
  resultOf,
  submitSome,
  type TestRedis,
} from '../support/mailbox-session.ts';

let connected: TestRedis;
let redis: Redis;
let keys: SessionKeys;
let generation: string;

beforeAll(async () => {
  connected = await connectTestRedis();
  redis = connected.redis;
});
afterAll(() => connected[Symbol.asyncDispose]());
beforeEach(async () => {
  keys = newKeys();
  generation = await openSession(redis, keys);
});

const typesOf = async () => (await readEvents(redis, keys)).map(({ type }) => type);

/** Submits one entry and has it started. */
async function startOne(owner: Owner, rest = {}) {
  await submit(redis, keys, newSubmission(generation, rest));
  const taken = await take(owner);
  if (taken.type !== 'started') throw new Error(`nothing was started: ${taken.type}`);
  return taken.entry;
}

describe('take', () => {
  test('hands out entries in the order in which they were accepted, each when the one before has ended (invariant 2)', async () => {
    const ids = await submitSome(redis, keys, generation, 3);
    const owner = await own(redis, keys);
    const taken: string[] = [];
    for (let next = await take(owner); next.type === 'started'; next = await take(owner)) {
      taken.push(next.entry.id);
      await finish(owner, next.entry.id, finishAs('success'));
    }
    expect(taken).toEqual(ids);
  });

  test('starts in one step: record, mark in the stream and payload together (invariant 3)', async () => {
    const owner = await own(redis, keys, 'h7');
    const submission = newSubmission(generation, { payload: 'sealed', inbox: 'p9', retry: 'idempotent' });
    await submit(redis, keys, submission);
    const taken = await take(owner);
    const record = await redis.hgetall(recordKey(keys, submission.entryId));
    expect(taken).toEqual({
      type: 'started',
      entry: {
        id: submission.entryId,
        kind: 'command',
        payload: 'sealed',
        inbox: 'p9',
        acceptedAt: Number(record.at),
        startedAt: Number(record.started),
        offsets: { stdout: 0, stderr: 0 },
        seq: 0,
        retry: 'idempotent',
        fence: owner.fence,
        host: 'h7',
      },
    });
    expect(record).toMatchObject({ state: 'running', fence: `${owner.fence}`, host: 'h7' });
    expect(await typesOf()).toEqual(['command.accepted', 'command.started']);
  });

  test('answers with the running entry when it arrives twice', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    await submitSome(redis, keys, generation, 1);
    expect(await take(owner)).toEqual({ type: 'running', entry });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([entry.id]);
  });

  test('answers empty when nothing waits, and says so when the life is ending', async () => {
    const owner = await own(redis, keys);
    expect(await take(owner)).toEqual({ type: 'empty' });
    await redis.hset(keys.state, 'life', 'closing');
    expect(await take(owner)).toEqual({ type: 'empty', closing: true });
  });

  test('starts nothing of a life that is ending', async () => {
    await submitSome(redis, keys, generation, 1);
    const owner = await own(redis, keys);
    await redis.hset(keys.state, 'life', 'closing');
    expect(await take(owner)).toEqual({ type: 'empty', closing: true });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([]);
  });

  test('returns a head whose start deadline has passed, unstarted', async () => {
    const submission = newSubmission(generation, { startDeadlineMs: 1 });
    await submit(redis, keys, submission);
    const owner = await own(redis, keys);
    await redis.hset(recordKey(keys, submission.entryId), 'deadline', 1);
    expect(await take(owner)).toMatchObject({
      type: 'overdue',
      entry: { id: submission.entryId, startedAt: 0, host: '' },
    });
    expect(await finish(owner, submission.entryId, finishAs('timeout', true))).toMatchObject({
      next: { type: 'empty' },
    });
    expect(await typesOf()).toEqual(['command.accepted', 'session.queued', 'command.completed']);
  });
});

describe('append', () => {
  test('stores binary output exactly, and all of a call or nothing (invariant 7)', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const bytes = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256));
    const first = pieceAfter(entry, bytes);
    const second = { ...pieceAfter(entry, 'oops\n', { stream: 'stderr' }), seq: 1 };
    expect(await append(owner, entry.id, [first, second])).toEqual({
      type: 'stored',
      offsets: { stdout: 512, stderr: 5 },
    });
    const misplaced = { ...pieceAfter(entry, 'x'), seq: 2, rawFrom: 511 };
    const fitting = { ...pieceAfter({ offsets: { stdout: 512, stderr: 5 }, seq: 2 }, 'y') };
    expect((await append(owner, entry.id, [fitting, misplaced])).type).toBe('misplaced');
    expect(outputOf(await readEvents(redis, keys), entry.id)).toEqual({ stdout: bytes, stderr: Buffer.from('oops\n') });
  });

  test('answers with the stored offsets when it arrives twice, and stores nothing again', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const piece = pieceAfter(entry, 'once\n');
    await append(owner, entry.id, [piece]);
    expect(await append(owner, entry.id, [piece])).toEqual({ type: 'misplaced', offsets: { stdout: 5, stderr: 0 } });
    expect(idsOf(await readEvents(redis, keys), 'command.output')).toHaveLength(1);
  });

  test('stores an entry that covers no raw byte once, too', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const empty = pieceAfter(entry, '');
    expect((await append(owner, entry.id, [empty])).type).toBe('stored');
    expect((await append(owner, entry.id, [empty])).type).toBe('misplaced');
    expect(idsOf(await readEvents(redis, keys), 'command.output')).toHaveLength(1);
  });

  test('is refused for an entry that does not run', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    await finish(owner, entry.id, finishAs('success'));
    expect(await append(owner, entry.id, [pieceAfter(entry, 'late')])).toEqual({ type: 'not-running' });
  });

  test('keeps raw offsets beyond 2^31 exact, as far as an entry can say them', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const far = 999_999_999_999_999;
    const first = pieceAfter(entry, 'x', { rawTo: 2 ** 31 + 1, omittedBytes: 2 ** 31 });
    const second = { ...first, seq: 1, rawFrom: 2 ** 31 + 1, rawTo: far };
    expect(await append(owner, entry.id, [first])).toMatchObject({ offsets: { stdout: 2 ** 31 + 1 } });
    expect(await append(owner, entry.id, [second])).toEqual({ type: 'stored', offsets: { stdout: far, stderr: 0 } });
    expect((await take(owner)).type === 'running' && (await redis.hget(recordKey(keys, entry.id), 'stdout'))).toBe(
      `${far}`,
    );
    const third = { ...first, seq: 2, rawFrom: far, rawTo: far };
    expect((await append(owner, entry.id, [third])).type).toBe('stored');
  });

  test('takes thousands of pieces in one call, and megabytes in one piece', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const many = Array.from({ length: 5_000 }, (_, seq) => ({
      ...pieceAfter(entry, 'x'),
      seq,
      rawFrom: seq,
      rawTo: seq + 1,
    }));
    expect(await append(owner, entry.id, many)).toMatchObject({ type: 'stored', offsets: { stdout: 5_000 } });
    const large = pieceAfter({ offsets: { stdout: 5_000, stderr: 0 }, seq: 5_000 }, Buffer.alloc(4 << 20, 0xff));
    expect((await append(owner, entry.id, [large])).type).toBe('stored');
  });
});

describe('finish', () => {
  test('ends the entry, stores its last output and starts the next in one step', async () => {
    const ids = await submitSome(redis, keys, generation, 2);
    const owner = await own(redis, keys);
    await take(owner);
    const output = [pieceAfter(atTheStart, 'bye\n')];
    const finished = await finish(owner, ids[0] ?? '', {
      ...finishAs('success', true),
      output,
      answer: 'sealed answer',
    });
    const events = await readEvents(redis, keys);
    expect(finished).toMatchObject({
      type: 'finished',
      endedBefore: false,
      next: { type: 'started', entry: { id: ids[1] } },
    });
    expect(events.slice(-3).map(({ type, entryId }) => [type, entryId])).toEqual([
      ['command.output', ids[0]],
      ['command.completed', ids[0]],
      ['command.started', ids[1]],
    ]);
    expect(finished).toMatchObject({ event: events.at(-2)?.id });
    expect(await redis.hget(recordKey(keys, ids[0] ?? ''), 'payload')).toBeNull();
    expect(await redis.get(answerKey(keys, ids[0] ?? ''))).toBe('sealed answer');
    expect(await redis.hgetall(recordKey(keys, ids[0] ?? ''))).toMatchObject({ state: 'ended', outcome: 'success' });
  });

  test('answers the same event when it arrives twice, with what runs now, and ends nothing again (invariant 4)', async () => {
    const ids = await submitSome(redis, keys, generation, 2);
    const owner = await own(redis, keys);
    await take(owner);
    const first = await finish(owner, ids[0] ?? '', finishAs('success', true));
    const second = await finish(owner, ids[0] ?? '', finishAs('failure', true));
    expect(first).toMatchObject({ next: { type: 'started' } });
    expect(second).toEqual({
      ...first,
      endedBefore: true,
      next: { ...('next' in first && first.next), type: 'running' },
    });
    expect(outcomesOf(await readEvents(redis, keys))).toEqual(new Map([[ids[0], 'success']]));
  });

  test('of one that arrives late, when the next has ended too, changes neither', async () => {
    const ids = await submitSome(redis, keys, generation, 2);
    const owner = await own(redis, keys);
    await take(owner);
    for (const id of ids) await finish(owner, id, finishAs('success', true));
    const before = await readEvents(redis, keys);
    expect(await finish(owner, ids[0] ?? '', finishAs('success', true))).toMatchObject({
      endedBefore: true,
      next: { type: 'empty' },
    });
    expect(await readEvents(redis, keys)).toEqual(before);
  });

  test('is refused for an entry that neither runs nor is the head', async () => {
    const ids = await submitSome(redis, keys, generation, 2);
    const owner = await own(redis, keys);
    expect(await finish(owner, ids[1] ?? '', finishAs('error'))).toEqual({ type: 'not-running' });
    await take(owner);
    expect(await finish(owner, ids[1] ?? '', finishAs('error'))).toEqual({ type: 'not-running' });
    expect(await finish(owner, '01UNKNOWN', finishAs('error'))).toEqual({ type: 'not-running' });
  });

  test('ends an unstarted head: a denial, or a failure of ours', async () => {
    const ids = await submitSome(redis, keys, generation, 2);
    const owner = await own(redis, keys);
    expect(await finish(owner, ids[0] ?? '', finishAs('error', true))).toMatchObject({
      next: { entry: { id: ids[1] } },
    });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([ids[1]]);
  });

  test('with output that does not follow the stored output ends nothing', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const output = [pieceAfter(entry, 'x', { rawFrom: 3 })];
    expect(await finish(owner, entry.id, { ...finishAs('success'), output })).toEqual({
      type: 'misplaced',
      offsets: { stdout: 0, stderr: 0 },
    });
    expect(await take(owner)).toMatchObject({ type: 'running' });
  });

  test('keeps a Result of a megabyte, with every character that JSON can hold', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const stdout = `${'é\u0000"\\\n\u2028😀'.repeat(100_000)}`;
    await finish(owner, entry.id, { result: resultOf('success', { stdout }), epoch: 1, takeNext: false });
    const event = (await readEvents(redis, keys)).at(-1);
    expect(JSON.parse(event?.data.toString() ?? '').stdout === stdout).toBe(true);
  });
});

describe('adopt', () => {
  test('takes the session over under a newer fence, with what runs and how much of its output is stored', async () => {
    const first = await own(redis, keys, 'h1');
    const entry = await startOne(first);
    await append(first, entry.id, [pieceAfter(entry, 'half')]);
    await submitSome(redis, keys, generation, 2);
    const second = { ...(await own(redis, keys, 'h2')) };
    const adopted = await adopt(second);
    expect(adopted).toMatchObject({
      type: 'adopted',
      life: 'open',
      generation,
      spec: 'sealed spec',
      waiting: 2,
      previousHost: 'h1',
      running: {
        id: entry.id,
        payload: 'sealed payload',
        offsets: { stdout: 4, stderr: 0 },
        seq: 1,
        fence: first.fence,
        host: 'h1',
      },
    });
  });

  test('answers the same when it arrives twice, the owner before included', async () => {
    await own(redis, keys, 'h1');
    const second = await own(redis, keys, 'h2');
    const [again, oncemore] = [await adopt(second), await adopt(second)];
    expect(again).toMatchObject({ previousHost: 'h1' });
    expect(oncemore).toEqual(again);
  });

  test('fences the owner before out of everything (invariant 1)', async () => {
    const first = await own(redis, keys, 'h1');
    const entry = await startOne(first);
    const second = await own(redis, keys, 'h2');
    const before = await readEvents(redis, keys);
    const answers = [
      await take(first),
      await append(first, entry.id, [pieceAfter(entry, 'x')]),
      await finish(first, entry.id, finishAs('success', true)),
      await rerun(first, entry.id),
      await announce(first, { epoch: 9, epochBase: 0, status: 'ready' }, { type: 'session.opened', data: {} }),
      await release(first, 'queued'),
      await adopt(first),
    ];
    expect(answers).toEqual(Array(7).fill({ type: 'fenced' }));
    expect(await readEvents(redis, keys)).toEqual(before);
    expect(await take(second)).toMatchObject({ type: 'running', entry: { id: entry.id, offsets: { stdout: 0 } } });
  });

  test('refuses an equal fence from another host', async () => {
    const first = await own(redis, keys, 'h1');
    expect(await adopt({ ...first, host: 'h2' })).toEqual({ type: 'fenced' });
    expect(await take(first)).toEqual({ type: 'empty' });
  });

  test('compares fences as numbers', async () => {
    const { fence: _, ...owner } = await own(redis, keys, 'h1');
    expect((await adopt({ ...owner, fence: 99 })).type).toBe('adopted');
    expect((await adopt({ ...owner, fence: 100 })).type).toBe('adopted');
    expect((await adopt({ ...owner, fence: 2 ** 31 + 5 })).type).toBe('adopted');
    expect(await take({ ...owner, fence: 2 ** 31 + 5 })).toEqual({ type: 'empty' });
    expect((await adopt({ ...owner, fence: 101 })).type).toBe('fenced');
  });

  test('of a fence that was given up is refused, so that a late one names no owner who is gone', async () => {
    const owner = await own(redis, keys, 'h1');
    await release(owner, 'queued');
    expect(await adopt(owner)).toEqual({ type: 'fenced' });
    expect(await submit(redis, keys, newSubmission(generation))).toMatchObject({ type: 'accepted', host: '' });
  });

  test('says that a session is closed, or was never opened', async () => {
    const unknown = newKeys();
    await expect(own(redis, unknown)).rejects.toThrow('closed');
  });
});

describe('rerun', () => {
  test('starts an idempotent entry again under a newer owner; its offsets and its seq begin again', async () => {
    const first = await own(redis, keys, 'h1');
    const entry = await startOne(first, { retry: 'idempotent' });
    await append(first, entry.id, [pieceAfter(entry, 'first run')]);
    const second = await own(redis, keys, 'h2');
    expect(await rerun(second, entry.id)).toEqual({ type: 'restarted' });
    const again = pieceAfter(atTheStart, 'second run');
    expect(await append(second, entry.id, [again])).toEqual({ type: 'stored', offsets: { stdout: 10, stderr: 0 } });
    expect(outputOf(await readEvents(redis, keys), entry.id).stdout.toString()).toBe('second run');
  });

  test('changes nothing when it arrives twice, or late', async () => {
    const entry = await startOne(await own(redis, keys, 'h1'), { retry: 'idempotent' });
    const second = await own(redis, keys, 'h2');
    await rerun(second, entry.id);
    await append(second, entry.id, [pieceAfter(entry, 'second run')]);
    expect(await rerun(second, entry.id)).toEqual({ type: 'restarted' });
    expect(await take(second)).toMatchObject({
      entry: { offsets: { stdout: 10 }, seq: 1, host: 'h2', fence: second.fence },
    });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([entry.id, entry.id]);
  });

  test('is refused for what is not marked, what was cancelled, and what this very owner started (invariant 3)', async () => {
    const owner = await own(redis, keys, 'h1');
    const plain = await startOne(owner);
    const second = await own(redis, keys, 'h2');
    expect(await rerun(second, plain.id)).toEqual({ type: 'refused' });
    await finish(second, plain.id, finishAs('lost'));
    const marked = await startOne(second, { retry: 'idempotent' });
    expect(await rerun(second, marked.id)).toEqual({ type: 'refused' });
    await redis.hset(recordKey(keys, marked.id), 'cancel', 'enough');
    expect(await rerun(await own(redis, keys, 'h3'), marked.id)).toEqual({ type: 'refused' });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([plain.id, marked.id]);
  });
});

describe('announce', () => {
  test('says an event once, however often it is called and however late a call arrives again', async () => {
    const calls: (() => Promise<unknown>)[] = [];
    const repeating = new Proxy(redis, {
      get: (target, name) =>
        name === 'evalsha'
          ? (...args: Parameters<Redis['evalsha']>) => {
              calls.push(() => target.evalsha(...args));
              return target.evalsha(...args);
            }
          : Reflect.get(target, name),
    });
    const owner = { ...(await own(redis, keys)), redis: repeating };
    const first = { epoch: 1, epochBase: 0 } as const;
    const opened = { type: 'session.opened', data: { hostId: 'h1' } } as const;
    const shell = () => redis.hmget(keys.state, 'epoch', 'status', 'base');
    await announce(owner, { ...first, status: 'starting' });
    await announce(owner, { ...first, status: 'ready' }, opened);
    await announce(owner, { ...first, status: 'ready' }, opened);
    for (const call of calls) await call();
    expect(await shell()).toEqual(['1', 'ready', '0']);
    await announce(owner, { ...first, status: 'starting' }, { type: 'session.lost', data: {} });
    for (const call of calls) await call();
    expect(await shell()).toEqual(['1', 'starting', '0']);
    await announce(owner, { epoch: 2, epochBase: 1, status: 'ready' });
    for (const call of calls) await call();
    expect(await shell()).toEqual(['2', 'ready', '1']);
    expect(await typesOf()).toEqual(['session.opened', 'session.lost']);
  });

  test('says it again for a newer owner', async () => {
    const shell = { epoch: 1, epochBase: 0, status: 'ready' } as const;
    await announce(await own(redis, keys, 'h1'), shell, { type: 'session.adopted', data: {} });
    await announce(await own(redis, keys, 'h1'), shell, { type: 'session.adopted', data: {} });
    expect(await typesOf()).toEqual(['session.adopted', 'session.adopted']);
  });
});

describe('the shell that an adopter has to find', () => {
  const ready = (sandbox: string) => ({ epoch: 1, epochBase: 0, status: 'ready', sandbox }) as const;
  const shellOf = async (host: string) => {
    const adopted = await adopt(await own(redis, keys, host));
    return adopted.type === 'adopted' ? adopted.shell : adopted.type;
  };

  test('is the one that was last ready, however many owners come before the next is', async () => {
    await announce(await own(redis, keys, 'h1'), ready('c1'));
    expect(await shellOf('h2')).toEqual({ host: 'h1', sandbox: 'c1' });
    await announce(await own(redis, keys, 'h2'), { epoch: 1, epochBase: 0, status: 'starting' });
    expect(await shellOf('h1')).toEqual({ host: 'h1', sandbox: 'c1' });
    await announce(await own(redis, keys, 'h2'), { ...ready('c2'), epoch: 2 });
    expect(await shellOf('h1')).toEqual({ host: 'h2', sandbox: 'c2' });
  });

  test('is none before the first is ready, after a release, and when its entry was started again elsewhere', async () => {
    expect(await shellOf('h1')).toBeUndefined();
    const first = await own(redis, keys, 'h1');
    await announce(first, ready('c1'));
    await release(first, 'queued');
    expect(await shellOf('h1')).toBeUndefined();
    const second = await own(redis, keys, 'h1');
    await announce(second, ready('c2'));
    const entry = await startOne(second, { retry: 'idempotent' });
    await rerun(await own(redis, keys, 'h2'), entry.id);
    expect(await shellOf('h1')).toBeUndefined();
  });
});

describe('release', () => {
  test('gives the session up, once, and answers the same when it arrives twice', async () => {
    const owner = await own(redis, keys);
    const lost = { type: 'session.lost', data: { reason: 'idle' } } as const;
    expect(await release(owner, 'lost', lost)).toEqual({ type: 'released', life: 'open' });
    expect(await release(owner, 'lost', lost)).toEqual({ type: 'released', life: 'open' });
    expect(await typesOf()).toEqual(['session.lost']);
    expect(await redis.hmget(keys.state, 'host', 'status')).toEqual([null, 'lost']);
  });

  test('is refused while anything runs or waits', async () => {
    const owner = await own(redis, keys);
    const [id] = await submitSome(redis, keys, generation, 1);
    expect(await release(owner, 'queued')).toEqual({ type: 'busy' });
    await take(owner);
    expect(await release(owner, 'queued')).toEqual({ type: 'busy' });
    await finish(owner, id ?? '', finishAs('success'));
    expect((await release(owner, 'queued')).type).toBe('released');
  });

  test('that arrives late gives up nothing of a newer owner', async () => {
    const first = await own(redis, keys, 'h1');
    const second = await own(redis, keys, 'h2');
    expect(await release(first, 'queued')).toEqual({ type: 'fenced' });
    expect(await take(second)).toEqual({ type: 'empty' });
  });

  test('of a session that is closing ends its life, and what a broken-off close left waiting', async () => {
    const owner = await own(redis, keys);
    const ids = await submitSome(redis, keys, generation, 3);
    await redis.hset(keys.state, 'life', 'closing');
    expect(await release(owner, 'queued')).toEqual({ type: 'released', life: 'closed' });
    expect(outcomesOf(await readEvents(redis, keys))).toEqual(new Map(ids.map((id) => [id, 'cancellation'])));
    expect((await typesOf()).at(-1)).toBe('session.closed');
  });
});

describe('note', () => {
  test('is said once per type and fence, and only of the owner that it is about', async () => {
    const owner = await own(redis, keys);
    expect(await note(redis, keys, owner.fence - 1, 'host.unreachable', {})).toBe(false);
    expect(await note(redis, keys, owner.fence, 'host.unreachable', {})).toBe(true);
    expect(await note(redis, keys, owner.fence, 'host.unreachable', {})).toBe(false);
    const next = await own(redis, keys, 'h2');
    expect(await note(redis, keys, next.fence, 'host.unreachable', {})).toBe(true);
    await release(next, 'queued');
    expect(await note(redis, keys, next.fence, 'host.unreachable', {})).toBe(false);
    expect(await typesOf()).toEqual(['host.unreachable', 'host.unreachable']);
  });
});

test('a host that owned an earlier life has no say in the next one', async () => {
  const owner = await own(redis, keys, 'h1');
  const entry = await startOne(owner);
  await close(redis, keys, generation, true);
  const next = await open(redis, keys, 'another spec', 'another digest');
  if (next.type !== 'created') throw new Error(next.type);
  const submission = newSubmission(next.generation);
  await submit(redis, keys, submission);
  expect([await adopt(owner), await take(owner), await finish(owner, entry.id, finishAs('success', true))]).toEqual(
    Array(3).fill({ type: 'fenced' }),
  );
  expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([entry.id]);
});
