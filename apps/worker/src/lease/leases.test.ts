import type { SessionJob, SessionJobs } from '@shellfleet/placement';
import { describe, expect, test } from 'vitest';
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
    renew: () => leases.renew(jobs.renew),
    at(time: number) {
      seconds = time;
    },
    add: (session: string, lockMs = 10_000) => leases.add(job(session), lockMs, () => lost.push(session)),
  };
}

describe('leases', () => {
  test('LEASE-1: a renewal extends the lease from its sending, not from its reply', async () => {
    const { at, add, renewals, renew } = setUp();
    const lease = add('s');
    const renewing = renew();
    at(4);
    renewals[0]?.reply();
    await renewing;
    at(8.999);
    expect(lease.held()).toBe(true);
    at(9);
    expect(lease.held()).toBe(false);
  });

  test('a new lease is held for nine tenths of its lock', () => {
    const { at, add } = setUp();
    at(100);
    const lease = add('s');
    at(108.999);
    expect(lease.held()).toBe(true);
    at(109);
    expect(lease.held()).toBe(false);
  });

  test('a renewal extends the lease from when it was sent', async () => {
    const { at, add, renewals, renew } = setUp();
    const lease = add('s');
    at(6);
    const renewing = renew();
    renewals[0]?.reply();
    await renewing;
    at(14.999);
    expect(lease.held()).toBe(true);
    at(15);
    expect(lease.held()).toBe(false);
  });

  test('LEASE-2: an expired lease is held again only after a confirmed renewal', async () => {
    const { at, add, lost, renewals, renew } = setUp();
    const lease = add('s');
    at(5);
    const failing = renew();
    renewals[0]?.fail();
    await expect(failing).rejects.toThrow('Redis is down');
    at(9);
    expect(lease.held()).toBe(false);
    const renewing = renew();
    renewals[1]?.reply();
    await renewing;
    expect(lease.held()).toBe(true);
    expect(lost).toEqual([]);
  });

  test('a lock of another host ends only that lease, at once, and is reported once', async () => {
    const { add, lost, renewals, renew } = setUp();
    const [stays, goes] = [add('stays'), add('goes')];
    const renewing = renew();
    renewals[0]?.reply([job('goes')]);
    await renewing;
    expect([stays.held(), goes.held(), lost]).toEqual([true, false, ['goes']]);
    void renew();
    expect(renewals[1]?.sessions).toEqual(['stays']);
  });

  test('a lock that the owner shortens counts at once, also in Redis', () => {
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

  test('a lock that the owner lengthens counts from the next renewal that is sent', async () => {
    const { at, add, renewals, renew } = setUp();
    const lease = add('s');
    const before = renew();
    at(1);
    lease.own(7, 100_000);
    expect(renewals[0]?.lockMs).toEqual([10_000]);
    renewals[0]?.reply();
    await before;
    at(9);
    expect(lease.held()).toBe(false);
    const after = renew();
    expect(renewals[1]?.lockMs).toEqual([100_000]);
    renewals[1]?.reply();
    await after;
    at(98.999);
    expect(lease.held()).toBe(true);
  });

  test('an ended lease is not renewed, and a late reply changes nothing', async () => {
    const { add, lost, renewals, renew } = setUp();
    const lease = add('s');
    const renewing = renew();
    lease.end();
    renewals[0]?.reply([job('s')]);
    await renewing;
    expect([lease.held(), lost]).toEqual([false, []]);
    await renew();
    expect(renewals.length).toBe(1);
  });

  test('the session’s next lease is unaffected by the previous one’s end or loss', async () => {
    const { add, lost, renewals, renew } = setUp();
    const first = add('s');
    const renewing = renew();
    const second = add('s');
    first.end();
    renewals[0]?.reply([job('s')]);
    await renewing;
    expect([first.held(), second.held(), lost]).toEqual([false, true, []]);
  });

  // LEASE-3
  test('are renewed when new, then every 3 s or twentieth of a lock', async () => {
    const { at, add, leases, renewals } = setUp();
    const due = async (seconds: number) => {
      at(seconds);
      const count = renewals.length;
      const renewing = leases.renewDue();
      renewals[count]?.reply();
      await renewing;
      return renewals[count]?.sessions ?? [];
    };
    add('long', 65_000);
    add('short', 10_000);
    add('shortest', 5_000);
    expect(await due(0.1)).toEqual(['long', 'short', 'shortest']);
    expect(await due(0.3)).toEqual([]);
    expect(await due(0.4)).toEqual(['shortest']);
    expect(await due(1)).toEqual(['short', 'shortest']);
    expect(await due(3)).toEqual(['short', 'shortest']);
    expect(await due(3.2)).toEqual(['long']);
  });

  test('are due again after a renewal that failed, and when the lock has changed', async () => {
    const { at, add, leases, renewals } = setUp();
    const lease = add('s', 65_000);
    const failing = leases.renewDue();
    renewals[0]?.fail();
    await expect(failing).rejects.toThrow('Redis is down');
    const renewing = leases.renewDue();
    lease.own(7, 100_000);
    renewals[1]?.reply();
    await renewing;
    at(0.7);
    const after = leases.renewDue();
    expect(renewals[2]?.lockMs).toEqual([100_000]);
    renewals[2]?.reply();
    await after;
    await leases.renewDue();
    expect(renewals).toHaveLength(3);
  });
});
