import { createHash } from 'node:crypto';
import { close, discard, finish, open, readIdempotencyKey, release, submit, take } from '@shellfleet/mailbox';
import { recordKey } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { finishAs, newSubmission, openSession, own } from '../support/mailbox-session.ts';
import { generation, keys, redis, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

const KEY = 'script-1';
const keyHash = createHash('sha256').update(KEY).digest('base64url');

/** Runs one command with an idempotency key on a host, which then closes the session if `closed`. */
async function runOne(closed: boolean) {
  const submission = newSubmission(generation, { idempotencyKey: keyHash });
  await submit(redis, keys, submission);
  const owner = await own(redis, keys);
  await take(owner);
  await finish(owner, submission.entryId, finishAs('success'));
  await close(redis, keys, generation, false);
  if (closed) await release(owner, 'queued');
  return { owner, known: { entryIds: [submission.entryId], idempotencyKeys: [KEY] } };
}

/** Returns the longest time to live of the session's keys; infinite if one does not expire. */
async function longestLife(): Promise<number> {
  const names = await redis.keys(`${keys.prefix}*`);
  const lives = await Promise.all(names.map((name) => redis.pttl(name)));
  return Math.max(0, ...lives.map((life) => (life < 0 ? Number.POSITIVE_INFINITY : life)));
}

describe('the mailbox call `discard`', () => {
  test('lets everything of a closed generation expire within seconds', async () => {
    const { known } = await runOne(true);
    expect(await longestLife()).toBeGreaterThan(60_000);
    expect(await discard(redis, keys, generation, known)).toBe(true);
    expect(await longestLife()).toBeLessThanOrEqual(5_000);
    expect(await discard(redis, keys, generation, known)).toBe(true);
  });

  test('lets a generation that is still closing expire when it has closed', async () => {
    const { owner, known } = await runOne(false);
    expect(await discard(redis, keys, generation, known)).toBe(true);
    expect(await redis.pttl(keys.state)).toBe(-1);
    await release(owner, 'queued');
    expect(await longestLife()).toBeLessThanOrEqual(5_000);
  });

  test('leaves the record of an entry that still runs, which its end needs', async () => {
    const submission = newSubmission(generation);
    const { entryId } = submission;
    await submit(redis, keys, submission);
    const owner = await own(redis, keys);
    await take(owner);
    await close(redis, keys, generation, false);
    expect(await discard(redis, keys, generation, { entryIds: [entryId], idempotencyKeys: [] })).toBe(true);
    expect(await redis.pttl(recordKey(keys, entryId))).toBe(-1);
    const end = { ...finishAs('cancellation'), cancelReason: 'session closed' };
    expect(await finish(owner, entryId, end)).toMatchObject({ type: 'finished' });
  });

  test('leaves an open generation as it is, and the retention of the next one', async () => {
    expect(await discard(redis, keys, generation, { entryIds: [], idempotencyKeys: [] })).toBe(false);
    const { known } = await runOne(true);
    await discard(redis, keys, generation, known);
    const next = await openSession(redis, keys);
    expect(await discard(redis, keys, generation, known)).toBe(false);
    expect(await redis.hget(keys.state, 'discard')).toBeNull();
    expect(await redis.pttl(keys.state)).toBeGreaterThan(60_000);
    expect(await open(redis, keys, () => 'sealed spec', 'digest')).toMatchObject({
      type: 'attached',
      generation: next,
    });
    expect(await readIdempotencyKey(redis, keys, KEY)).toMatchObject({ entryId: known.entryIds[0] });
  });
});
