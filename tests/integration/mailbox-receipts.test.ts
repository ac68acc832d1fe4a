import { setTimeout as delay } from 'node:timers/promises';
import { adopt, answerHeld, cancel, finish, hold, putBack, rerun, take } from '@shellfleet/mailbox';
import { newResult, type WireResult, wireResultSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { readEvents } from '../support/invariants.ts';
import { acquireFor, finishAs, own, resultOf, submitSome } from '../support/mailbox-session.ts';
import { generation, keys, redis, startOne, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

// Times that the scripts record, and the receipts of entries that end without their host.

const RULES = 'digest-1';
const PAUSE_MS = 30;
const denial = newResult({ outcome: 'denial', reason: 'approver' });

/** Returns the Result of the last entry that ended, with the time of its event. */
async function lastResult(): Promise<{ result: WireResult; at: number }> {
  const event = (await readEvents(redis, keys)).findLast(({ type }) => type === 'command.completed');
  const result = wireResultSchema.parse(JSON.parse(event?.data.toString() ?? 'null'));
  return { result, at: Number(event?.id.split('-')[0]) };
}

async function expectUnstarted(causes: readonly string[]): Promise<void> {
  const { result, at } = await lastResult();
  const { timings, receipt } = result;
  expect(timings).toEqual({ queuedMs: timings.queuedMs, startMs: 0, runMs: 0, totalMs: timings.queuedMs });
  expect(receipt).toMatchObject({ unstarted: true });
  expect((receipt?.acceptedAt ?? 0) + timings.totalMs).toBeGreaterThanOrEqual(at - 1);
  expect((receipt?.acceptedAt ?? 0) + timings.totalMs).toBeLessThanOrEqual(at);
  const waits = receipt?.waits ?? [];
  expect(waits.map(([wait]) => wait)).toEqual(causes);
  const sum = waits.reduce((total, [, ms]) => total + ms, 0);
  expect(sum).toBeGreaterThanOrEqual(causes.length * PAUSE_MS - 2);
  expect(sum).toBeLessThanOrEqual(timings.queuedMs);
}

describe('the receipt of an entry that a script ends', () => {
  test('names the slot that its session did not have', async () => {
    const [id = ''] = await submitSome(redis, keys, generation, 1);
    await delay(PAUSE_MS);
    await cancel(redis, keys, id, 'no longer needed');
    await expectUnstarted(['slot']);
  });

  test('names the earlier command that still runs', async () => {
    const owner = await own(redis, keys);
    await startOne(owner);
    const [id = ''] = await submitSome(redis, keys, generation, 1);
    await delay(PAUSE_MS);
    await cancel(redis, keys, id, 'no longer needed');
    await expectUnstarted(['earlier']);
  });

  test('names the slot, and then the person who denied it', async () => {
    const [id = ''] = await submitSome(redis, keys, generation, 1);
    await delay(PAUSE_MS);
    const owner = { ...(await own(redis, keys)), admission: RULES };
    expect(await take(owner)).toMatchObject({ type: 'needs-admission' });
    await hold(owner, id, RULES, {});
    await delay(PAUSE_MS);
    await answerHeld(redis, keys, id, { type: 'deny', result: denial }, {});
    await expectUnstarted(['slot', 'approval']);
  });

  test('has the time in which a person was asked about a second attempt', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const first = resultOf('failure', { receipt: { acceptedAt: entry.acceptedAt, waits: [['slot', 5]] } });
    const attempt = { sealed: 'first', result: first as Extract<WireResult, { outcome: 'failure' }>, output: [] };
    expect(await putBack(owner, entry.id, attempt)).toEqual({ type: 'put-back' });
    await hold(owner, entry.id, RULES, {});
    await delay(PAUSE_MS);
    await answerHeld(redis, keys, entry.id, { type: 'deny', result: denial }, {});
    const { result } = await lastResult();
    expect(result).toMatchObject({ outcome: 'failure', timings: first.timings });
    expect(result.receipt).toEqual({ ...first.receipt, askedMs: result.receipt?.askedMs });
    expect(result.receipt?.askedMs).toBeGreaterThanOrEqual(PAUSE_MS - 2);
  });
});

describe('the times of an entry', () => {
  test('tell when a person was asked about it, and when that ended', async () => {
    const [id = ''] = await submitSome(redis, keys, generation, 1);
    const owner = { ...(await own(redis, keys)), admission: RULES };
    await hold(owner, id, RULES, {});
    await answerHeld(redis, keys, id, { type: 'release' }, {});
    const events = await readEvents(redis, keys);
    const [from, to] = ['approval.requested', 'approval.answered'].map((name) =>
      Number(events.find(({ type }) => type === name)?.id.split('-')[0]),
    );
    expect(await take(owner)).toMatchObject({ type: 'needs-admission', entry: { startedAt: 0, asked: { from, to } } });
  });

  test('keep the first start when it runs again, however often the call arrives', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner, { retry: 'idempotent' });
    await delay(PAUSE_MS);
    const again = await rerun(owner, entry);
    expect(again).toMatchObject({ type: 'restarted', firstStartedAt: entry.startedAt });
    expect(await rerun(owner, entry)).toEqual(again);
    expect(await take(owner)).toMatchObject({
      type: 'running',
      entry: { firstStartedAt: entry.startedAt, startedAt: again.type === 'restarted' && again.startedAt },
    });
  });
});

describe('an adoption', () => {
  test('returns the times of ownership and last end, and how far clocks differ', async () => {
    const owner = await own(redis, keys);
    const entry = await startOne(owner);
    const finished = await finish(owner, entry.id, finishAs('success'));
    const activeAt = finished.type === 'finished' && Number(finished.event.split('-')[0]);
    const first = await adopt(owner);
    await delay(PAUSE_MS);
    const second = await adopt(owner);
    if (first.type !== 'adopted' || second.type !== 'adopted') throw new Error('it is not the owner');
    expect(second).toEqual({ ...first, clockAheadMs: second.clockAheadMs });
    expect(first).toMatchObject({ activeAt });
    expect(Math.abs(second.clockAheadMs)).toBeLessThan(1_000);
    const next = await adopt(await acquireFor(redis, keys, 'h2'));
    if (next.type !== 'adopted') throw new Error('it is not the owner');
    expect(next.ownedAt).toBeGreaterThan(first.ownedAt);
  });
});
