import { addLate, append, finish, submit, take } from '@shellfleet/mailbox';
import { recordKey } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { idsOf, outputGaps, outputOf, overlapping, readEvents } from '../support/invariants.ts';
import { finishAs, newSubmission, own, pieceAfter } from '../support/mailbox-session.ts';
import { generation, keys, redis, startOne, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

/** Runs an entry that prints `own` and ends. */
async function endOne(host = 'h1') {
  const owner = await own(redis, keys, host);
  const entry = await startOne(owner);
  await append(owner, entry.id, [pieceAfter(entry, 'own\n')]);
  await finish(owner, entry.id, finishAs('success'));
  return { owner, id: entry.id };
}

const behindOwn = { offsets: { stdout: 4, stderr: 0 }, seq: 1, carriedBytes: 4, outcome: 'success' };

describe('the mailbox call `late` for late output', () => {
  test("returns the position after an ended entry's output, and appends there", async () => {
    const { owner, id } = await endOne();
    expect(await addLate(owner, id, [])).toEqual({ type: 'stored', position: behindOwn });
    const first = pieceAfter(behindOwn, 'late\n');
    const second = pieceAfter({ ...behindOwn, seq: 2 }, 'oops\n', { stream: 'stderr' });
    const added = await addLate(owner, id, [first, second]);
    expect(added).toEqual({
      type: 'stored',
      position: { offsets: { stdout: 9, stderr: 5 }, seq: 3, carriedBytes: expect.any(Number), outcome: 'success' },
    });
    // `carriedBytes` includes the headers of chunks, because the budget limits the bytes of the stream.
    expect((added as { position: typeof behindOwn }).position.carriedBytes).toBeGreaterThanOrEqual(14);
    const events = await readEvents(redis, keys);
    expect(events.map(({ type }) => type).slice(2)).toEqual([
      'command.output',
      'command.completed',
      'command.output',
      'command.output',
    ]);
    expect(outputOf(events, id)).toEqual({ stdout: Buffer.from('own\nlate\n'), stderr: Buffer.from('oops\n') });
    expect([...outputGaps(events), ...overlapping(events)]).toEqual([]);
    // The record keeps the offsets at the end of the entry: those of output that was printed before the end.
    expect(await redis.hmget(recordKey(keys, id), 'stdout', 'stderr')).toEqual(['4', '0']);
  });

  test('returns the position again when the call is repeated, and stores nothing', async () => {
    const { owner, id } = await endOne();
    const piece = pieceAfter(behindOwn, 'late\n');
    const stored = await addLate(owner, id, [piece]);
    expect(await addLate(owner, id, [piece])).toEqual({ ...stored, type: 'misplaced' });
    expect(idsOf(await readEvents(redis, keys), 'command.output')).toHaveLength(2);
  });

  test('is refused for an entry that has not ended or is unknown', async () => {
    const owner = await own(redis, keys);
    const running = await startOne(owner);
    expect(await addLate(owner, running.id, [pieceAfter(running, 'x')])).toEqual({ type: 'not-ended' });
    expect(await addLate(owner, '01ARZ3NDEKTSV4RRFFQ69G5FAV', [])).toEqual({ type: 'unknown' });
  });

  test('keeps withheld output withheld for the next owner', async () => {
    const { owner, id } = await endOne();
    const blocked = { type: 'email', reason: 'matched' as const };
    await addLate(owner, id, [pieceAfter(behindOwn, '', { rawTo: 9, omittedBytes: 5, blocked })]);
    const next = await own(redis, keys, 'h2');
    expect(await addLate(next, id, [])).toMatchObject({ position: { offsets: { stdout: 9 }, outcome: 'blocked' } });
  });

  // Invariant 1
  test('is refused for an earlier owner', async () => {
    const { owner, id } = await endOne();
    await own(redis, keys, 'h2');
    expect(await addLate(owner, id, [pieceAfter(behindOwn, 'x')])).toEqual({ type: 'fenced' });
    expect(idsOf(await readEvents(redis, keys), 'command.output')).toHaveLength(1);
  });

  test("leaves the running entry alone, and does not extend its record's expiry", async () => {
    const { owner, id } = await endOne();
    const before = await redis.pttl(recordKey(keys, id));
    await submit(redis, keys, newSubmission(generation));
    const next = await take(owner);
    if (next.type !== 'started') throw new Error(next.type);
    await addLate(owner, id, [pieceAfter(behindOwn, 'late\n')]);
    expect((await append(owner, next.entry.id, [pieceAfter(next.entry, 'next\n')])).type).toBe('stored');
    await finish(owner, next.entry.id, finishAs('success'));
    const events = await readEvents(redis, keys);
    expect(outputOf(events, next.entry.id).stdout.toString()).toBe('next\n');
    expect([...outputGaps(events), ...overlapping(events)]).toEqual([]);
    const after = await redis.pttl(recordKey(keys, id));
    expect(after).toBeGreaterThan(0);
    expect(after).toBeLessThanOrEqual(before);
  });

  test('keeps raw offsets exact up to fifteen digits', async () => {
    const { owner, id } = await endOne();
    const far = 999_999_999_999_999;
    await addLate(owner, id, [pieceAfter(behindOwn, 'x', { rawTo: far, omittedBytes: far - 5 })]);
    expect(await addLate(owner, id, [])).toMatchObject({ position: { offsets: { stdout: far, stderr: 0 }, seq: 2 } });
  });
});
