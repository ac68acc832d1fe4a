import { append, cancel, finish, submit, sweep, take } from '@shellfleet/mailbox';
import { recordKey } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { idsOf, outcomesOf, outputGaps, outputOf, readEvents } from '../support/invariants.ts';
import { finishAs, newKeys, newSubmission, own, pieceAfter, submitSome } from '../support/mailbox-session.ts';
import { generation, keys, redis, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

const DAY = 86_400_000;
const AMPLE = { retentionMs: DAY, streamBytes: 2 ** 40 };

/** Runs the head, which prints some output. */
async function runNext(owner: Awaited<ReturnType<typeof own>>, output: Buffer, end = true): Promise<string> {
  const taken = await take(owner);
  if (taken.type !== 'started') throw new Error(taken.type);
  await append(owner, taken.entry.id, [pieceAfter(taken.entry, output)]);
  if (end) await finish(owner, taken.entry.id, finishAs('success'));
  return taken.entry.id;
}

/** Waits for the next millisecond of the clock of Redis, from which the ids of a stream are made. */
async function nextMillisecond(): Promise<void> {
  const read = async () => (await redis.time()).map(Number);
  const [seconds, micros = 0] = await read();
  const isPast = ([s, u = 0]: number[]) => s !== seconds || Math.floor(u / 1_000) > Math.floor(micros / 1_000);
  while (!isPast(await read())) await redis.ping();
}

/** Makes the age marks, which sweeps store, older by `byMs`. */
async function age(byMs: number): Promise<void> {
  const marks = (await redis.hget(keys.state, 'ageMarks')) ?? '';
  await redis.hset(
    keys.state,
    'ageMarks',
    marks.replaceAll(/(\d+):/g, (_, time: string) => `${Number(time) - byMs}:`),
  );
}

describe('the mailbox call `sweep`', () => {
  test('ends waiting entries whose start deadline has passed, and no others', async () => {
    const late = newSubmission(generation, { startDeadlineMs: 1, inbox: 'p7' });
    const patient = newSubmission(generation, { startDeadlineMs: 60_000 });
    for (const submission of [patient, late]) await submit(redis, keys, submission);
    await redis.hset(recordKey(keys, late.entryId), 'deadline', 1);
    const swept = await sweep(redis, keys);
    expect(swept).toMatchObject({
      waiting: 1,
      host: '',
      hasWork: true,
      ended: [{ entryId: late.entryId, inbox: 'p7' }],
    });
    expect(await sweep(redis, keys)).toMatchObject({ ended: [] });
    expect(outcomesOf(await readEvents(redis, keys))).toEqual(new Map([[late.entryId, 'timeout']]));
  });

  test('finds an overdue entry at the end of a long queue over several calls', async () => {
    const late = newSubmission(generation, { startDeadlineMs: 1 });
    await redis.rpush(keys.queue, ...Array.from({ length: 2_500 }, (_, index) => `e${index}`));
    await submit(redis, keys, late);
    await redis.hset(recordKey(keys, late.entryId), 'deadline', 1);
    const swept = [await sweep(redis, keys), await sweep(redis, keys), await sweep(redis, keys)];
    expect(swept.map(({ ended }) => ended.length)).toEqual([0, 0, 1]);
    await redis.del(keys.queue);
  });

  test('finds an overdue entry behind one that it has just ended', async () => {
    const [first, second] = [
      newSubmission(generation, { startDeadlineMs: 1 }),
      newSubmission(generation, { startDeadlineMs: 1 }),
    ];
    await submit(redis, keys, first);
    await redis.rpush(keys.queue, ...Array.from({ length: 999 }, (_, index) => `e${index}`));
    await submit(redis, keys, second);
    for (const { entryId } of [first, second]) await redis.hset(recordKey(keys, entryId), 'deadline', 1);
    const swept = [await sweep(redis, keys), await sweep(redis, keys)];
    expect(swept.map(({ ended }) => ended.map(({ entryId }) => entryId))).toEqual([[first.entryId], [second.entryId]]);
    await redis.del(keys.queue);
  });

  test('keeps ended entries until the retention is over', async () => {
    const owner = await own(redis, keys);
    await submitSome(redis, keys, generation, 1);
    await runNext(owner, Buffer.from('kept\n'));
    await nextMillisecond();
    await sweep(redis, keys, AMPLE);
    const before = await readEvents(redis, keys);
    await age(DAY - 60_000);
    await sweep(redis, keys, AMPLE);
    expect(await readEvents(redis, keys)).toEqual(before);
    await age(60_000);
    await sweep(redis, keys, AMPLE);
    expect(await readEvents(redis, keys)).toEqual([]);
  });

  test('trims entries that ended a retention ago, whenever they began', async () => {
    const owner = await own(redis, keys);
    await submitSome(redis, keys, generation, 1);
    const ended = await runNext(owner, Buffer.from('old\n'));
    await nextMillisecond();
    await submitSome(redis, keys, generation, 1);
    const running = await runNext(owner, Buffer.from('still\n'), false);
    await sweep(redis, keys, AMPLE);
    await finish(owner, running, finishAs('success'));
    await nextMillisecond();
    await age(DAY);
    await sweep(redis, keys, AMPLE);
    const events = await readEvents(redis, keys);
    expect(idsOf(events, 'command.accepted')).toEqual([running]);
    expect(idsOf(events, 'command.completed')).not.toContain(ended);
    expect(outputOf(events, running).stdout.toString()).toBe('still\n');
    await age(DAY);
    await sweep(redis, keys, AMPLE);
    expect(await readEvents(redis, keys)).toEqual([]);
  });

  test('does not trim entries that wait or run because of their age', async () => {
    const owner = await own(redis, keys);
    const ids = await submitSome(redis, keys, generation, 2);
    await runNext(owner, Buffer.from('still\n'), false);
    const before = await readEvents(redis, keys);
    for (let round = 0; round < 8; round += 1) {
      await sweep(redis, keys, AMPLE);
      await age(DAY);
    }
    // Events before the first acceptance may be trimmed. There are none here.
    expect(await readEvents(redis, keys)).toEqual(before);
    expect(idsOf(before, 'command.accepted')).toEqual(ids);
  });

  test('keeps at most five marks of age, however often it runs', async () => {
    await submitSome(redis, keys, generation, 1);
    for (let round = 0; round < 40; round += 1) {
      await sweep(redis, keys, AMPLE);
      await age(DAY / 8);
    }
    expect(((await redis.hget(keys.state, 'ageMarks')) ?? '').split(' ').length).toBeLessThanOrEqual(5);
  });

  test('trims the oldest finished commands first, down to about the byte limit', async () => {
    const owner = await own(redis, keys);
    const ids = await submitOneByOne(owner, 40, 16_384);
    await sweep(redis, keys, { ...AMPLE, streamBytes: 200_000 });
    const left = idsOf(await readEvents(redis, keys), 'command.completed');
    expect(left).toEqual(ids.slice(-left.length));
    expect(left.length).toBeGreaterThan(4);
    expect(await redis.memory('USAGE', keys.stream, 'SAMPLES', 0)).toBeLessThan(220_000);
  });

  test('drops finished commands that follow the acceptance of a waiting one', async () => {
    const owner = await own(redis, keys);
    const ids = await submitSome(redis, keys, generation, 42);
    for (let index = 0; index < 40; index += 1) await runNext(owner, Buffer.alloc(16_384, 97 + (index % 26)));
    const running = await runNext(owner, Buffer.alloc(65_536, 65), false);
    for (let round = 0; round < 3; round += 1) await sweep(redis, keys, { ...AMPLE, streamBytes: 200_000 });
    const events = await readEvents(redis, keys);
    const left = idsOf(events, 'command.completed');
    expect(left).toEqual(ids.slice(40 - left.length, 40));
    expect(left.length).toBeLessThan(12);
    expect(idsOf(events, 'command.accepted')).toEqual(expect.arrayContaining(ids.slice(40)));
    expect(outputOf(events, running).stdout.byteLength).toBe(65_536);
    expect(outputGaps(events.filter(({ entryId }) => entryId === running))).toEqual([]);
    await finish(owner, running, finishAs('success'));
    expect(await take(owner)).toMatchObject({ type: 'started', entry: { id: ids[41] } });
  });

  test("does not trim the running command's output, however long it is", async () => {
    const owner = await own(redis, keys);
    await submitSome(redis, keys, generation, 1);
    // Events before the start of the command are checked.
    for (const _ of [1, 2]) await nextMillisecond();
    const running = await runNext(owner, Buffer.alloc(500_000, 65), false);
    for (let round = 0; round < 3; round += 1) await sweep(redis, keys, { ...AMPLE, streamBytes: 10_000 });
    expect(outputOf(await readEvents(redis, keys), running).stdout.byteLength).toBe(500_000);
    // All events were checked, so the next sweep starts from the first one.
    expect(await redis.hexists(keys.state, 'bytesFrom')).toBe(0);
  });

  test('frees memory that Redis reserves in an idle session, and keeps every event', async () => {
    const owner = await own(redis, keys);
    await submitSome(redis, keys, generation, 1);
    const running = await runNext(owner, Buffer.from('hi\n'), false);
    await sweep(redis, keys, AMPLE);
    const usage = () => redis.memory('USAGE', keys.stream, 'SAMPLES', 0);
    expect(await usage()).toBeGreaterThan(4_096);
    await finish(owner, running, finishAs('success'));
    const info = async () => {
      const fields = (await redis.xinfo('STREAM', keys.stream)) as unknown[];
      return ['length', 'last-generated-id', 'entries-added'].map((name) => fields[fields.indexOf(name) + 1]);
    };
    const before = [await readEvents(redis, keys), await info()];
    await sweep(redis, keys, AMPLE);
    expect(await usage()).toBeLessThan(2_560);
    expect([await readEvents(redis, keys), await info()]).toEqual(before);
    expect([await redis.exists(`${keys.stream}:copy`), await redis.pttl(keys.stream)]).toEqual([0, -1]);
    await redis.pexpire(keys.stream, DAY);
    await redis.xadd(keys.stream, '*', 't', 'session.queued', 'c', '', 'd', ' '.repeat(3_000));
    await sweep(redis, keys, AMPLE);
    expect(await redis.pttl(keys.stream)).toBeGreaterThan(0);
    expect((await readEvents(redis, keys)).length).toBe(4 + 1);
  });

  test('reports whether an entry waits or runs, or the session is closing', async () => {
    const hasWork = async () => (await sweep(redis, keys)).hasWork;
    expect(await hasWork()).toBe(false);
    const [id = ''] = await submitSome(redis, keys, generation, 1);
    expect(await hasWork()).toBe(true);
    const owner = await own(redis, keys);
    await take(owner);
    expect(await hasWork()).toBe(true);
    await finish(owner, id, finishAs('success'));
    expect(await hasWork()).toBe(false);
    await redis.hset(keys.state, 'phase', 'closing');
    expect(await hasWork()).toBe(true);
  });

  test('completes an interrupted close if there is no host', async () => {
    const ids = await submitSome(redis, keys, generation, 2);
    await redis.hset(keys.state, 'phase', 'closing');
    const swept = await sweep(redis, keys);
    expect(swept).toMatchObject({ hasWork: false, ended: ids.map((entryId) => ({ entryId })) });
    expect(await redis.hget(keys.state, 'phase')).toBe('closed');
    expect(await redis.pttl(keys.state)).toBeGreaterThan(0);
  });

  test('leaves no key behind for an unknown session', async () => {
    const unknown = newKeys();
    expect(await sweep(redis, unknown)).toEqual({
      trimmed: 0,
      waiting: 0,
      host: '',
      ended: [],
      hasWork: false,
      phase: '',
    });
    expect(await redis.exists(unknown.state, unknown.stream, unknown.queue)).toBe(0);
  });

  test('keeps a record without payload for the retention after its end', async () => {
    const [id = ''] = await submitSome(redis, keys, generation, 1);
    expect(await redis.pttl(recordKey(keys, id))).toBe(-1);
    await cancel(redis, keys, id, 'no');
    expect(await redis.pttl(recordKey(keys, id))).toBeGreaterThan(DAY - 60_000);
  });

  async function submitOneByOne(
    owner: Awaited<ReturnType<typeof own>>,
    count: number,
    bytes: number,
  ): Promise<string[]> {
    const ids: string[] = [];
    for (let index = 0; index < count; index += 1) {
      await submitSome(redis, keys, generation, 1);
      ids.push(await runNext(owner, Buffer.alloc(bytes, 97 + (index % 26))));
    }
    return ids;
  }

  test('ends an unused generation after the retention, unless its owner may come back', async () => {
    const owner = await own(redis, keys);
    await submitSome(redis, keys, generation, 1);
    await runNext(owner, Buffer.from('done\n'));
    await redis.hset(keys.state, 'activeAt', 1);
    const limits = { ...AMPLE, retentionMs: 1_000_000 };
    expect((await sweep(redis, keys, limits)).phase).toBe('open');
    expect((await sweep(redis, keys, { ...limits, ownerGone: true })).phase).toBe('closed');
    const closed = (await readEvents(redis, keys)).filter(({ type }) => type === 'session.closed');
    expect(closed.map(({ data }) => data.toString())).toEqual(['{"reason":"nobody used it for the retention"}']);
    expect(await take(owner)).toEqual({ type: 'fenced' });
    for (const key of [keys.state, keys.stream]) expect(await redis.pttl(key)).toBeGreaterThan(0);
  });

  test('does not end a generation in which an entry waits', async () => {
    const [id] = await submitSome(redis, keys, generation, 1);
    await redis.hset(keys.state, 'activeAt', 1);
    expect(await sweep(redis, keys, { ...AMPLE, retentionMs: 1_000_000 })).toMatchObject({
      phase: 'open',
      waiting: 1,
      hasWork: true,
    });
    expect(await take(await own(redis, keys))).toMatchObject({ type: 'started', entry: { id } });
  });
});
