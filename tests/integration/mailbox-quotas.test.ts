import {
  answerHeld,
  cancel,
  clear,
  close,
  failWaitingEntries,
  finish,
  hold,
  type Owner,
  putBack,
  submit,
  sweep,
  take,
} from '@shellfleet/mailbox';
import { newResult, quotasKey, type SessionKeys, ShellfleetError, sessionKeys, waitingKey } from '@shellfleet/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { finishAs, newSubmission, openSession, own, resultOf, submitSome } from '../support/mailbox-session.ts';
import { generation, keys, redis, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

// MAILBOX-7: the quota of waiting entries of a tenant, over all its sessions.

const RULES = 'digest-1';
const SWEEP = { retentionMs: 86_400_000, streamBytes: 2 ** 40 };
let second: SessionKeys;
let secondGeneration: string;

const setQuota = (maxQueued: number) =>
  redis.set(quotasKey(keys.namespace, keys.tenant), JSON.stringify({ maxQueued }));
const counts = () => redis.hgetall(waitingKey(keys.namespace, keys.tenant));

beforeEach(async () => {
  second = sessionKeys(keys.namespace, keys.tenant, 's2');
  secondGeneration = await openSession(redis, second);
});

/** Expects that the tenant's count is that of the queues, and returns it. */
async function counted(): Promise<number> {
  const lengths = await Promise.all([keys, second].map(({ queue }) => redis.llen(queue)));
  const parts = [keys, second].map(({ session }, index) => [session, String(lengths[index])]);
  const sum = lengths.reduce((a, b) => a + b, 0);
  const expected = Object.fromEntries([...parts, ['*', String(sum)]].filter(([, count]) => count !== '0'));
  expect(await counts()).toEqual(expected);
  return sum;
}

/** Takes the head, which the rules admit. */
async function start(owner: Owner): Promise<string> {
  const head = await take({ ...owner, admission: RULES });
  const id = head.type === 'needs-admission' ? head.entry.id : '';
  expect(await clear(owner, id, RULES)).toMatchObject({ type: 'started' });
  return id;
}

describe('the quota of waiting entries of a tenant', () => {
  test('refuses every submit beyond it, however many arrive at once', async () => {
    await setQuota(5);
    const submits = Array.from({ length: 20 }, (_, n) =>
      n % 2 === 0
        ? submit(redis, keys, newSubmission(generation))
        : submit(redis, second, newSubmission(secondGeneration)),
    );
    const replies = await Promise.all(submits);
    expect(replies.filter(({ type }) => type === 'accepted')).toHaveLength(5);
    const refusal = { type: 'over-quota', quota: 'maxQueued', used: 5, limit: 5 };
    expect(replies.filter(({ type }) => type !== 'accepted')).toEqual(Array(15).fill(refusal));
    expect(await counted()).toBe(5);
  });

  test('accepts again what was accepted before, and what an idempotency key names', async () => {
    await setQuota(1);
    const first = newSubmission(generation, { idempotencyKey: 'key' });
    await submit(redis, keys, first);
    expect((await submit(redis, keys, first)).type).toBe('accepted-before');
    const repeated = newSubmission(generation, { idempotencyKey: 'key' });
    expect(await submit(redis, keys, repeated)).toMatchObject({ type: 'deduplicated', entryId: first.entryId });
  });

  test('is counted exactly, whatever starts or ends an entry', async () => {
    await setQuota(100);
    const ids = await submitSome(redis, keys, generation, 12);
    await submitSome(redis, second, secondGeneration, 3);
    expect(await counted()).toBe(15);
    const owner = await own(redis, keys);
    const first = await start(owner);
    expect(await counted()).toBe(14);
    const failure = resultOf('failure') as Parameters<typeof putBack>[2]['result'];
    await putBack(owner, first, { sealed: 'sealed first', result: failure, output: [] });
    expect(await counted()).toBe(15);
    await finish(owner, await start(owner), finishAs('success', true));
    expect(await counted()).toBe(13);
    await cancel(redis, keys, ids[5] as string, 'not needed');
    expect(await counted()).toBe(12);
    const running = await take(owner);
    await finish(owner, running.type === 'running' ? running.entry.id : '', finishAs('success'));
    const [head] = await redis.lrange(keys.queue, 0, 0);
    await finish(owner, head as string, finishAs('denial'));
    expect(await counted()).toBe(11);
    const held = (await redis.lindex(keys.queue, 0)) as string;
    await hold({ ...owner, admission: RULES }, held, RULES, { reason: 'asks' });
    const denial = newResult({ outcome: 'denial', reason: 'approver' });
    await answerHeld(redis, keys, held, { type: 'deny', result: denial });
    expect(await counted()).toBe(10);
    await failWaitingEntries(redis, second, secondGeneration, new ShellfleetError('SEAL_KEY_UNKNOWN', 'no key'));
    expect(await counted()).toBe(7);
    await close(redis, keys, generation, false);
    expect(await counts()).toEqual({});
  });

  test('counts what waited before it was set, and forgets its counts when it is removed', async () => {
    await submitSome(redis, keys, generation, 2);
    expect(await counts()).toEqual({});
    await setQuota(3);
    await sweep(redis, keys, SWEEP);
    expect(await counted()).toBe(2);
    const overdue = newSubmission(secondGeneration, { startDeadlineMs: 1 });
    await submit(redis, second, overdue);
    await expect
      .poll(async () => {
        await sweep(redis, second, SWEEP);
        return counted();
      })
      .toBe(2);
    await redis.del(quotasKey(keys.namespace, keys.tenant));
    await sweep(redis, keys, SWEEP);
    expect(await counts()).toEqual({});
  });

  test('counts a session from its next submit on, whatever was started before', async () => {
    await submitSome(redis, keys, generation, 4);
    await setQuota(10);
    const owner = await own(redis, keys);
    const first = await take(owner);
    if (first.type !== 'started') throw new Error(first.type);
    expect(await counts()).toEqual({});
    await submitSome(redis, keys, generation, 1);
    expect(await counted()).toBe(4);
    await finish(owner, first.entry.id, finishAs('success', true));
    expect(await counted()).toBe(3);
  });
});
