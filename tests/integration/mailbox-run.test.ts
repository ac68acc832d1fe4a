import { append, type Entry, finish, rerun, submit, take } from '@shellfleet/mailbox';
import { payloadKey, recordKey, replyKey } from '@shellfleet/protocol';

import { describe, expect, test } from 'vitest';
import { idsOf, outcomesOf, outputOf, readEvents } from '../support/invariants.ts';
import {
  atTheStart,
  finishAs,
  newSubmission,
  own,
  pieceAfter,
  resultOf,
  submitSome,
} from '../support/mailbox-session.ts';

import { generation, keys, redis, startOne, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

const typesOf = async () => (await readEvents(redis, keys)).map(({ type }) => type);

describe('the mailbox call `take`', () => {
  // Invariant 2
  test('returns entries in accepted order, each after the end of the previous one', async () => {
    const ids = await submitSome(redis, keys, generation, 3);
    const owner = await own(redis, keys);
    const taken: string[] = [];
    for (let next = await take(owner); next.type === 'started'; next = await take(owner)) {
      taken.push(next.entry.id);
      await finish(owner, next.entry.id, finishAs('success'));
    }
    expect(taken).toEqual(ids);
  });

  // Invariant 3
  test('writes record, event and payload in one step', async () => {
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
        acceptedAt: Number(record.acceptedAt),
        startedAt: Number(record.startedAt),
        offsets: { stdout: 0, stderr: 0 },
        seq: 0,
        retry: 'idempotent',
        fence: owner.fence,
        host: 'h7',
        starts: 1,
      },
    });
    expect(record).toMatchObject({ state: 'running', fence: `${owner.fence}`, host: 'h7' });
    expect(await typesOf()).toEqual(['command.accepted', 'command.started']);
  });

  test('returns the running entry when it arrives twice', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    await submitSome(redis, keys, generation, 1);
    expect(await take(owner)).toEqual({ type: 'running', entry });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([entry.id]);
  });

  test('returns `empty` when nothing waits, with `closing` if the generation is closing', async () => {
    const owner = await own(redis, keys);
    expect(await take(owner)).toEqual({ type: 'empty' });
    await redis.hset(keys.state, 'phase', 'closing');
    expect(await take(owner)).toEqual({ type: 'empty', closing: true });
  });

  test('starts nothing in a closing generation', async () => {
    await submitSome(redis, keys, generation, 1);
    const owner = await own(redis, keys);
    await redis.hset(keys.state, 'phase', 'closing');
    expect(await take(owner)).toEqual({ type: 'empty', closing: true });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([]);
  });

  test('returns a head whose start deadline has passed, without starting it', async () => {
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

describe('the mailbox call `append`', () => {
  // Invariant 7
  test('stores binary output exactly, and all of a call or nothing', async () => {
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

  test('returns the stored offsets when it arrives twice, and stores nothing again', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const piece = pieceAfter(entry, 'once\n');
    await append(owner, entry.id, [piece]);
    expect(await append(owner, entry.id, [piece])).toEqual({ type: 'misplaced', offsets: { stdout: 5, stderr: 0 } });
    expect(idsOf(await readEvents(redis, keys), 'command.output')).toHaveLength(1);
  });

  test('stores a chunk without raw bytes once, too', async () => {
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

  test('keeps raw offsets exact up to fifteen digits', async () => {
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

  test('accepts thousands of chunks in one call, and megabytes in one chunk', async () => {
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

describe('the mailbox call `finish`', () => {
  test('ends the entry, stores its last output and starts the next one together', async () => {
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
    expect(await redis.get(payloadKey(keys, ids[0] ?? ''))).toBeNull();
    expect(await redis.get(replyKey(keys, ids[0] ?? ''))).toBe('sealed answer');
    expect(await redis.hgetall(recordKey(keys, ids[0] ?? ''))).toMatchObject({ state: 'ended', outcome: 'success' });
  });

  // Invariant 4
  test('returns the same event when it arrives twice, and ends nothing again', async () => {
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

  test('returns the started entry when it is repeated without starting one', async () => {
    const ids = await submitSome(redis, keys, generation, 3);
    const owner = await own(redis, keys);
    await take(owner);
    await finish(owner, ids[0] ?? '', finishAs('success', true));
    const second = await finish(owner, ids[0] ?? '', finishAs('success', false));
    expect(second).toMatchObject({ endedBefore: true, next: { type: 'running', entry: { id: ids[1] } } });
  });

  test('changes nothing when it arrives after the end of the next entry', async () => {
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

  test('ends a running entry that has lost its record, once, and starts the next', async () => {
    const ids = await submitSome(redis, keys, generation, 2);
    const owner = await own(redis, keys);
    await take(owner);
    await redis.del(recordKey(keys, ids[0] ?? ''));
    const first = await finish(owner, ids[0] ?? '', finishAs('success', true));
    expect(first).toMatchObject({ endedBefore: false, next: { entry: { id: ids[1] } } });
    expect(await finish(owner, ids[0] ?? '', finishAs('success', true))).toMatchObject({ endedBefore: true });
    expect(idsOf(await readEvents(redis, keys), 'command.completed')).toEqual([ids[0]]);
  });

  test('ends an unstarted head as a denial or an error', async () => {
    const ids = await submitSome(redis, keys, generation, 2);
    const owner = await own(redis, keys);
    expect(await finish(owner, ids[0] ?? '', finishAs('error', true))).toMatchObject({
      next: { entry: { id: ids[1] } },
    });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([ids[1]]);
  });

  test('ends nothing if its output does not follow the stored output', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const output = [pieceAfter(entry, 'x', { rawFrom: 3 })];
    expect(await finish(owner, entry.id, { ...finishAs('success'), output })).toEqual({
      type: 'misplaced',
      offsets: { stdout: 0, stderr: 0 },
    });
    expect(await take(owner)).toMatchObject({ type: 'running' });
  });

  test('keeps a Result of a megabyte with every character of JSON', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const stdout = `${'é\u0000"\\\n\u2028😀'.repeat(100_000)}`;
    await finish(owner, entry.id, { result: resultOf('success', { stdout }), epoch: 1, takeNext: false });
    const event = (await readEvents(redis, keys)).at(-1);
    expect(JSON.parse(event?.data.toString() ?? '').stdout === stdout).toBe(true);
  });
});

describe('the mailbox call `rerun`', () => {
  const restarted = ({ startedAt }: Entry) => ({
    ...{ type: 'restarted', startedAt: expect.any(Number), firstStartedAt: startedAt },
  });

  test('starts an idempotent entry again under a newer owner with new offsets', async () => {
    const first = await own(redis, keys, 'h1');
    const entry = await startOne(first, { retry: 'idempotent' });
    await append(first, entry.id, [pieceAfter(entry, 'first run')]);
    const second = await own(redis, keys, 'h2');
    expect(await rerun(second, entry)).toEqual(restarted(entry));
    const again = pieceAfter(atTheStart, 'second run');
    expect(await append(second, entry.id, [again])).toEqual({ type: 'stored', offsets: { stdout: 10, stderr: 0 } });
    expect(outputOf(await readEvents(redis, keys), entry.id).stdout.toString()).toBe('second run');
  });

  test('changes nothing when it arrives twice or late', async () => {
    const entry = await startOne(await own(redis, keys, 'h1'), { retry: 'idempotent' });
    const second = await own(redis, keys, 'h2');
    await rerun(second, entry);
    await append(second, entry.id, [pieceAfter(entry, 'second run')]);
    expect(await rerun(second, entry)).toEqual(restarted(entry));
    expect(await take(second)).toMatchObject({
      entry: { offsets: { stdout: 10 }, seq: 1, host: 'h2', fence: second.fence },
    });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([entry.id, entry.id]);
  });

  // Invariant 3
  test('is refused for entries that are not idempotent or were cancelled', async () => {
    const plain = await startOne(await own(redis, keys, 'h1'));
    const second = await own(redis, keys, 'h2');
    expect(await rerun(second, plain)).toEqual({ type: 'refused' });
    await finish(second, plain.id, finishAs('lost'));
    const marked = await startOne(second, { retry: 'idempotent' });
    await redis.hset(recordKey(keys, marked.id), 'cancel', 'enough');
    expect(await rerun(await own(redis, keys, 'h3'), marked)).toEqual({ type: 'refused' });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([plain.id, marked.id]);
  });

  test('allows three starts in all, and counts them across owners', async () => {
    const owner = await own(redis, keys, 'h1');
    const entry = await startOne(owner, { retry: 'idempotent' });
    expect(entry.starts).toBe(1);
    expect(await rerun(owner, entry)).toEqual(restarted(entry));
    const second = await own(redis, keys, 'h2');
    const running = await take(second);
    expect(running).toMatchObject({ type: 'running', entry: { starts: 2 } });
    // `entry` is the state of the entry before its second start, so it is out of date.
    expect(await rerun(second, entry)).toEqual({ type: 'refused' });
    expect(await rerun(second, { ...entry, starts: 2 })).toEqual(restarted(entry));
    expect(await rerun(second, { ...entry, starts: 3 })).toEqual({ type: 'refused' });
    const started = (await readEvents(redis, keys)).filter(({ type }) => type === 'command.started');
    expect(started.map(({ data }) => JSON.parse(data.toString()).attempt)).toEqual([undefined, 2, 3]);
  });
});
