import {
  adopt,
  answerHeld,
  append,
  cancel,
  clear,
  close,
  type Entry,
  finish,
  hold,
  type Owner,
  peek,
  putBack,
  readFirstResult,
  rerun,
  submit,
  take,
} from '@shellfleet/mailbox';
import { newResult, recordKey, type WireResult, wireResultSchema } from '@shellfleet/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { idsOf, outputOf, readEvents } from '../support/invariants.ts';
import { atTheStart, finishAs, newSubmission, own, pieceAfter, resultOf } from '../support/mailbox-session.ts';
import { generation, keys, redis, startOne, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

// ATTEMPT-1 to ATTEMPT-4 in the mailbox: what happens to an entry after its first attempt.

const RULES = 'digest-1';
let owner: Owner;
let entry: Entry;
beforeEach(async () => {
  owner = { ...(await own(redis, keys)), admission: RULES };
  await submit(redis, keys, newSubmission(generation));
  const head = await take(owner);
  const cleared = await clear(owner, head.type === 'needs-admission' ? head.entry.id : '', RULES);
  if (cleared.type !== 'started') throw new Error(`nothing was started: ${cleared.type}`);
  entry = cleared.entry;
});

const DENIED = { what: 'files', line: 'touch: /etc/a: Read-only file system', mayAsk: true } as const;
const FIRST = resultOf('failure', {
  exitCode: 2,
  stderr: 'a "quoted" line\n',
  totals: { stdoutBytes: 0, stderrBytes: 16, stdoutLines: 0, stderrLines: 1 },
  denied: DENIED,
} as Partial<WireResult>) as Extract<WireResult, { outcome: 'failure' }>;
const put = (of = owner, output = [pieceAfter(atTheStart, 'a line', { stream: 'stderr' as const })]) =>
  putBack(of, entry.id, { sealed: 'sealed first', result: FIRST, output });
const completed = async () => {
  const event = (await readEvents(redis, keys)).findLast(({ type }) => type === 'command.completed');
  return wireResultSchema.parse(JSON.parse(event?.data.toString() ?? 'null'));
};
const stored = (result: WireResult) => wireResultSchema.parse(JSON.parse(JSON.stringify(result)));
const heldAgain = async () => {
  await put();
  expect(await hold(owner, entry.id, RULES, { reason: 'again' })).toEqual({ type: 'held' });
};

describe('an entry that is put back', () => {
  test('becomes the head again, undecided, and keeps its output so far', async () => {
    await submit(redis, keys, newSubmission(generation));
    expect(await put()).toEqual({ type: 'put-back' });
    expect(await peek(owner)).toMatchObject({
      ...{ entry: { id: entry.id, first: 'sealed first', starts: 1 }, runnable: true, cleared: '' },
    });
    expect(await take(owner)).toMatchObject({
      type: 'needs-admission',
      entry: { id: entry.id, first: 'sealed first' },
    });
    const events = await readEvents(redis, keys);
    expect(outputOf(events, entry.id).stderr.toString()).toBe('a line');
    expect(idsOf(events, 'command.completed')).toEqual([]);
  });

  test('starts again once it is cleared, with new offsets and `seq`', async () => {
    await put();
    expect(await clear(owner, entry.id, RULES)).toMatchObject({
      type: 'started',
      entry: { id: entry.id, first: 'sealed first', starts: 2, offsets: { stdout: 0, stderr: 0 }, seq: 0 },
    });
    const second = pieceAfter(atTheStart, 'second');
    expect(await append(owner, entry.id, [second])).toEqual({ type: 'stored', offsets: { stdout: 6, stderr: 0 } });
    await finish(owner, entry.id, finishAs('success'));
    expect(await completed()).toEqual(stored(resultOf('success')));
    const started = (await readEvents(redis, keys)).filter(({ type }) => type === 'command.started');
    expect(started.map(({ data }) => JSON.parse(data.toString()))).toEqual([
      { hostId: 'h1' },
      { hostId: 'h1', again: true, attempt: 2 },
    ]);
  });

  test('is put back once, and has no third attempt', async () => {
    await put();
    expect(await put()).toEqual({ type: 'put-back' });
    await clear(owner, entry.id, RULES);
    expect(await put()).toEqual({ type: 'put-back' });
    expect(await take(owner)).toMatchObject({ type: 'running', entry: { id: entry.id } });
    const third = await putBack(owner, entry.id, { sealed: 'another', result: FIRST, output: [] });
    expect(third).toEqual({ type: 'refused' });
    expect(await rerun(owner, { id: entry.id, starts: 2 })).toEqual({ type: 'refused' });
  });

  test('keeps its attempt under the next owner', async () => {
    await heldAgain();
    const next = { ...(await own(redis, keys, 'h2')), admission: RULES };
    expect(await adopt(next)).not.toHaveProperty('running');
    expect(await take(next)).toEqual({ type: 'empty' });
    await answerHeld(redis, keys, entry.id, { type: 'release' });
    expect(await take(next)).toMatchObject({ type: 'needs-admission', entry: { first: 'sealed first' } });
    expect(await put(next)).toEqual({ type: 'put-back' });
  });

  test('has no start deadline any more', async () => {
    await redis.hset(recordKey(keys, entry.id), 'deadline', 1);
    await put();
    expect(await take(owner)).toMatchObject({ type: 'needs-admission' });
  });
});

// ATTEMPT-3
describe('the Result of a first attempt without a second one', () => {
  const kept = (refused: string) => stored({ ...FIRST, refused });

  test('is kept when a person denies the second, even without an owner', async () => {
    await heldAgain();
    await redis.hdel(keys.state, 'host');
    const stderr = 'Denied: ada denied it: not there\n';
    const result = newResult({ outcome: 'denial', reason: 'approver' }, { stderr });
    expect(await answerHeld(redis, keys, entry.id, { type: 'deny', result })).toMatchObject({ type: 'denied' });
    expect(await completed()).toEqual(kept('ada denied it: not there'));
  });

  test('is kept when nobody answers in time', async () => {
    await heldAgain();
    const error = { code: 'APPROVAL_EXPIRED', message: 'Nobody answered.', retryable: false, context: {} };
    await answerHeld(redis, keys, entry.id, { type: 'deny', result: newResult({ outcome: 'error', error }) });
    expect(await completed()).toEqual(kept('Nobody answered.'));
  });

  test('is kept when the host ends the entry', async () => {
    await put();
    const result = await readFirstResult(owner, entry.id, 'the rules have changed');
    expect(result).toEqual(kept('the rules have changed'));
    expect(await finish(owner, entry.id, { result: result!, epoch: 1, takeNext: false })).toMatchObject({
      type: 'finished',
    });
    expect(await completed()).toEqual(kept('the rules have changed'));
  });

  test('becomes a cancellation if the entry is cancelled or its session closed', async () => {
    await heldAgain();
    expect(await cancel(redis, keys, entry.id, 'enough')).toMatchObject({ type: 'ended' });
    const { exitCode: _, reason: __, outcome: ___, ...rest } = FIRST;
    const cancelled = newResult({ outcome: 'cancellation', reason: 'cancelled', cancelReason: 'enough' }, rest);
    expect(await completed()).toEqual(stored(cancelled));
    entry = await startOne({ ...owner, admission: undefined });
    await heldAgain();
    await close(redis, keys, generation, false);
    expect(await completed()).toMatchObject({ outcome: 'cancellation', stderr: FIRST.stderr });
  });
});

describe('a first attempt', () => {
  test.each([
    ['the entry was cancelled', () => redis.hset(recordKey(keys, entry.id), 'cancel', 'enough')],
    ['the stdin is open', () => redis.hset(recordKey(keys, entry.id), 'input', 'open')],
    ['the generation is closing', () => redis.hset(keys.state, 'phase', 'closing')],
    ['the entry does not run', () => redis.hdel(keys.state, 'running')],
  ])('is not put back if %s', async (_why, change) => {
    await change();
    const before = await redis.hgetall(recordKey(keys, entry.id));
    expect(await put()).toEqual({ type: 'refused' });
    expect(await redis.hgetall(recordKey(keys, entry.id))).toEqual(before);
  });

  test('is not put back by a fenced owner or after a gap in the output', async () => {
    const later = [{ ...pieceAfter(atTheStart, 'late'), rawFrom: 7, rawTo: 11 }];
    expect(await put(owner, later as never)).toEqual({ type: 'misplaced', offsets: { stdout: 0, stderr: 0 } });
    await own(redis, keys, 'h2');
    expect(await put()).toEqual({ type: 'fenced' });
  });
});
