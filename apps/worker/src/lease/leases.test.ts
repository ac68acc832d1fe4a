import type { SessionJob, SessionJobs } from '@shellfleet/placement';
import { expect, test } from 'vitest';
import { createLeases } from './leases.ts';

const job = (session: string): SessionJob => ({ tenant: 'acme', session, placementClass: 'docker' });

/** Creates leases on a clock in seconds that the test sets, and a Redis whose replies to renewals the test triggers. */
function setUp() {
  let seconds = 0;
  const renewals: { sessions: string[]; lockMs: number[]; reply(lost?: SessionJob[]): void; fail(): void }[] = [];
  const jobs: Pick<SessionJobs, 'renew'> = {
    renew: (leases) =>
      new Promise((resolve, reject) => {
        renewals.push({
          sessions: leases.map((lease) => lease.job.session),
          lockMs: leases.map((lease) => lease.lockMs),
          reply: (lost = []) => resolve(lost),
          fail: () => reject(new Error('Redis is down')),
        });
      }),
  };
  const leases = createLeases(jobs, () => seconds * 1_000);
  const lost: string[] = [];
  return {
    lost,
    leases,
    renewals,
    at(time: number) {
      seconds = time;
    },
    add: (session: string, lockMs = 10_000) => leases.add(job(session), lockMs, () => lost.push(session)),
  };
}

test('A renewal that started at 0 and was answered at 4 s holds a 10 s lock until 9 s, not until 13 s (LEASE-1)', async () => {
  const { at, add, leases, renewals } = setUp();
  const lease = add('s');
  const renewing = leases.renew();
  at(4);
  renewals[0]?.reply();
  await renewing;
  at(8.999);
  expect(lease.held()).toBe(true);
  at(9);
  expect(lease.held()).toBe(false);
});

test('a lease that was just added is held for nine tenths of its lock', () => {
  const { at, add } = setUp();
  at(100);
  const lease = add('s');
  at(108.999);
  expect(lease.held()).toBe(true);
  at(109);
  expect(lease.held()).toBe(false);
});

test('a renewal extends the lease from when it was sent', async () => {
  const { at, add, leases, renewals } = setUp();
  const lease = add('s');
  at(6);
  const renewing = leases.renew();
  renewals[0]?.reply();
  await renewing;
  at(14.999);
  expect(lease.held()).toBe(true);
  at(15);
  expect(lease.held()).toBe(false);
});

test('a renewal without an answer extends nothing, and a lease that ran out is held again once a renewal is confirmed (LEASE-2)', async () => {
  const { at, add, lost, leases, renewals } = setUp();
  const lease = add('s');
  at(5);
  const failing = leases.renew();
  renewals[0]?.fail();
  await expect(failing).rejects.toThrow('Redis is down');
  at(9);
  expect(lease.held()).toBe(false);
  const renewing = leases.renew();
  renewals[1]?.reply();
  await renewing;
  expect(lease.held()).toBe(true);
  expect(lost).toEqual([]);
});

test('a lock that another host has ends that lease alone, at once and once', async () => {
  const { add, lost, leases, renewals } = setUp();
  const [stays, goes] = [add('stays'), add('goes')];
  const renewing = leases.renew();
  renewals[0]?.reply([job('goes')]);
  await renewing;
  expect([stays.held(), goes.held(), lost]).toEqual([true, false, ['goes']]);
  void leases.renew();
  expect(renewals[1]?.sessions).toEqual(['stays']);
});

test('the owner’s shorter lock counts at once, in Redis too', () => {
  const { at, add, renewals } = setUp();
  const lease = add('s', 65_000);
  at(1);
  lease.own(7, 5_000);
  expect(renewals.map(({ sessions, lockMs }) => [sessions, lockMs])).toEqual([[['s'], [5_000]]]);
  at(5.499);
  expect(lease.held()).toBe(true);
  at(5.5);
  expect(lease.held()).toBe(false);
});

test('the owner’s longer lock counts from its first renewal on, not from one that was sent before', async () => {
  const { at, add, leases, renewals } = setUp();
  const lease = add('s');
  const before = leases.renew();
  at(1);
  lease.own(7, 100_000);
  expect(renewals[0]?.lockMs).toEqual([10_000]);
  renewals[0]?.reply();
  await before;
  at(9);
  expect(lease.held()).toBe(false);
  const after = leases.renew();
  expect(renewals[1]?.lockMs).toEqual([100_000]);
  renewals[1]?.reply();
  await after;
  at(98.999);
  expect(lease.held()).toBe(true);
});

test('a lease that ended is renewed no more, and a reply that comes later changes nothing', async () => {
  const { add, lost, leases, renewals } = setUp();
  const lease = add('s');
  const renewing = leases.renew();
  lease.end();
  renewals[0]?.reply([job('s')]);
  await renewing;
  expect([lease.held(), lost]).toEqual([false, []]);
  await leases.renew();
  expect(renewals.length).toBe(1);
});

test('the session’s next lease here is not touched by the end, or the lost renewal, of the one before', async () => {
  const { add, lost, leases, renewals } = setUp();
  const first = add('s');
  const renewing = leases.renew();
  const second = add('s');
  first.end();
  renewals[0]?.reply([job('s')]);
  await renewing;
  expect([first.held(), second.held(), lost]).toEqual([false, true, []]);
});
