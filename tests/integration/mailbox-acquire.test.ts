import { forget, submit } from '@shellfleet/mailbox';
import { acquire, renew, requeue, sessionJobLockKey } from '@shellfleet/placement';
import {
  type FleetKeys,
  fleetKeys,
  LIMITS,
  type SessionKeys,
  sessionJobId,
  sessionKeys,
  sessionsQueue,
  tenantKeys,
} from '@shellfleet/protocol';
import { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connectTestRedis, newKeys, newSubmission, openSession, type TestRedis } from '../support/mailbox-session.ts';

const LOCK_MS = 30_000;

let connected: TestRedis;
let redis: Redis;
let keys: SessionKeys;
let fleet: FleetKeys;
let lock: string;

beforeAll(async () => {
  connected = await connectTestRedis();
  redis = connected.redis;
});
afterAll(() => connected[Symbol.asyncDispose]());
beforeEach(() => {
  keys = newKeys();
  fleet = fleetKeys(keys.namespace);
  lock = sessionJobLockKey(fleet, 'docker', keys);
});

const acquireFor = (host: string) => acquire(redis, fleet, { ...keys, placementClass: 'docker' }, host, LOCK_MS);

async function acquireAnew(host: string): Promise<{ fence: number; host: string }> {
  await redis.set(lock, host);
  const acquired = await acquireFor(host);
  if (acquired.type !== 'acquired') throw new Error(acquired.type);
  return { fence: acquired.fence, host };
}

/** Returns whether the owner could renew its lock. */
async function renewAs({ fence, host }: { fence: number; host: string }): Promise<boolean> {
  const held = { job: { ...keys, placementClass: 'docker' }, fence, lockMs: 2 * LOCK_MS };
  return (await renew(redis, fleet, host, [held])).lost.length === 0;
}

describe('the lease of a session', () => {
  test('has the lock of its BullMQ job at the key in keys.ts', async () => {
    const shared = { connection: redis, prefix: fleet.sessionQueues };
    const queue = new Queue(sessionsQueue('docker', keys.tenant), shared);
    const worker = new Worker(sessionsQueue('docker', keys.tenant), null, {
      ...shared,
      autorun: false,
      lockDuration: LOCK_MS,
    });
    try {
      const jobId = sessionJobId(keys.tenant, keys.session);
      await queue.add('session', {}, { jobId, removeOnComplete: true, removeOnFail: true });
      expect(await acquireFor('h1')).toEqual({ type: 'refused', holder: '' });
      expect((await worker.getNextJob('h1', { block: false }))?.id).toBe(jobId);
      expect(await redis.get(lock)).toBe('h1');
      expect(await redis.pttl(lock)).toBeGreaterThan(LOCK_MS - 5_000);
      expect(await acquireFor('h1')).toMatchObject({ type: 'acquired' });
      expect(await renewAs({ fence: 1, host: 'h1' })).toBe(true);
      expect(await redis.pttl(lock)).toBeGreaterThan(LOCK_MS);
    } finally {
      await Promise.allSettled([worker.close(true), queue.close()]);
    }
  });

  // Invariant 1
  test('gets a higher fence each time, across all sessions', async () => {
    await redis.set(lock, 'h1');
    const fences: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const acquired = await acquireFor('h1');
      if (acquired.type === 'acquired') fences.push(acquired.fence);
    }
    expect(fences).toEqual([1, 2, 3]);
    expect(await redis.hgetall(fleet.owners)).toEqual({ [keys.member]: '3 h1' });
  });

  test('has exact fences beyond 2^31', async () => {
    await redis.set(lock, 'h1');
    await redis.set(fleet.fence, `${2 ** 40}`);
    expect(await acquireFor('h1')).toEqual({ type: 'acquired', fence: 2 ** 40 + 1 });
  });

  test('is refused with the name of the host that has the job', async () => {
    await redis.set(lock, 'h2');
    expect(await acquireFor('h1')).toEqual({ type: 'refused', holder: 'h2' });
    expect(await redis.exists(fleet.fence, fleet.owners)).toBe(0);
  });

  test('restores a missing lock that still belongs to the caller', async () => {
    await redis.set(lock, 'h1');
    await acquireFor('h1');
    await redis.del(lock);
    expect(await acquireFor('h1')).toEqual({ type: 'acquired', fence: 2 });
    expect(await redis.get(lock)).toBe('h1');
    expect(await redis.pttl(lock)).toBeGreaterThan(LOCK_MS - 5_000);
  });

  test('does not restore a missing lock for a host that is not the last owner', async () => {
    expect(await acquireFor('h1')).toEqual({ type: 'refused', holder: '' });
    await redis.set(lock, 'h2');
    await acquireFor('h2');
    await redis.del(lock);
    expect(await acquireFor('h1')).toMatchObject({ type: 'refused' });
    expect(await redis.exists(lock)).toBe(0);
  });

  test.each(['still there', 'expired'])('is renewed by its last owner, with a lock that is %s', async (lockIs) => {
    const owner = await acquireAnew('h1');
    if (lockIs === 'expired') await redis.del(lock);
    expect(await renewAs(owner)).toBe(true);
    expect(await redis.get(lock)).toBe('h1');
    expect(await redis.pttl(lock)).toBeGreaterThan(LOCK_MS);
  });

  test('is renewed by no other host and under no earlier fence', async () => {
    const earlier = await acquireAnew('h1');
    const owner = await acquireAnew('h1');
    await redis.del(lock);
    expect(await renewAs(earlier)).toBe(false);
    expect(await renewAs({ ...owner, host: 'h2' })).toBe(false);
    expect(await redis.exists(lock)).toBe(0);
    await redis.set(lock, 'h2');
    expect(await renewAs(owner)).toBe(false);
    expect(await redis.get(lock)).toBe('h2');
  });

  test('is renewed together with others by a call that names lost leases', async () => {
    const locks = Array.from({ length: 450 }, (_, index) => ({
      job: { ...keys, session: `s${index}`, placementClass: 'docker' },
      lockMs: LOCK_MS,
    }));
    const lockOf = (index: number) => sessionJobLockKey(fleet, 'docker', { ...keys, session: `s${index}` });
    await Promise.all(locks.map((_, index) => redis.set(lockOf(index), index % 100 === 7 ? 'h2' : 'h1', 'PX', 1_000)));
    const from = Date.now();
    const { lost, redisTime } = await renew(redis, fleet, 'h1', locks);
    expect(lost.map(({ job }) => job.session)).toEqual(['s7', 's107', 's207', 's307', 's407']);
    expect(Math.abs(redisTime - from)).toBeLessThan(60_000);
    expect(await redis.pttl(lockOf(449))).toBeGreaterThan(LOCK_MS - 10_000);
    expect(await redis.pttl(lockOf(407))).toBeLessThanOrEqual(1_000);
  });
});

describe('a job whose lock has expired', () => {
  let queue: Queue;
  let worker: Worker;
  let jobId: string;
  let owner: { fence: number; host: string };

  beforeEach(async () => {
    const shared = { connection: redis, prefix: fleet.sessionQueues };
    queue = new Queue(sessionsQueue('docker', keys.tenant), shared);
    worker = new Worker(sessionsQueue('docker', keys.tenant), null, {
      ...shared,
      autorun: false,
      lockDuration: LOCK_MS,
    });
    jobId = sessionJobId(keys.tenant, keys.session);
    await queue.add('session', {}, { jobId, removeOnComplete: true });
    await worker.getNextJob('h1', { block: false });
    const acquired = await acquireFor('h1');
    await redis.zadd(fleet.queues, 0, sessionsQueue('docker', keys.tenant));
    owner = { fence: acquired.type === 'acquired' ? acquired.fence : 0, host: 'h1' };
    await queue.add('session', {}, { jobId: 'waits' });
    await redis.del(lock);
  });
  afterEach(() => Promise.allSettled([worker.close(true), queue.close()]));

  const queuesOf = ({ sessionQueues: prefix, queues: names, requeued: guard }: FleetKeys) => ({ prefix, names, guard });
  const fetch = async () => (await worker.getNextJob('h2', { block: false }))?.id;

  test('is handed out again before all waiting jobs', async () => {
    expect(await requeue(redis, queuesOf(fleet), 1)).toBe(1);
    expect([await fetch(), await fetch(), await fetch()]).toEqual([jobId, 'waits', undefined]);
  });

  test('is handed out to nobody after its owner has renewed the lock', async () => {
    await requeue(redis, queuesOf(fleet), 1);
    expect(await renewAs(owner)).toBe(true);
    expect([await fetch(), await fetch()]).toEqual(['waits', undefined]);
    // The job is active, and its owner can end it.
    await (await queue.getJob(jobId))?.moveToCompleted(null, 'h1', false);
    expect(await queue.getJob(jobId)).toBeUndefined();
  });

  test('stays in place if the search for expired locks comes too late or early', async () => {
    expect(await requeue(redis, queuesOf(fleet), 60_000)).toBe(1);
    expect(await fetch()).toBe(jobId);
    await redis.del(lock);
    expect(await requeue(redis, queuesOf(fleet), 1)).toBe(0);
    await redis.del(fleet.requeued);
    redis.time = async () => [1_000_000, 0];
    expect(await requeue(redis, queuesOf(fleet), 1)).toBe(0);
    Reflect.deleteProperty(redis, 'time');
    expect(await requeue(redis, queuesOf(fleet), 1)).toBe(1);
  });
});

describe('a closed session', () => {
  const listsOf = () => tenantKeys(keys.namespace, keys.tenant);

  test('leaves the index and the owners, unless something was submitted again', async () => {
    await redis.set(lock, 'h1');
    await acquireFor('h1');
    await redis.zadd(listsOf().index, 1_000, keys.session);
    const seen = (await redis.zscore(listsOf().index, keys.session)) ?? '';
    await redis.zadd(listsOf().index, 1_763_690_000_000, keys.session);
    expect(await forget(redis, keys, seen)).toBe(false);
    expect(await redis.hexists(fleet.owners, keys.member)).toBe(1);
    const now = (await redis.zscore(listsOf().index, keys.session)) ?? '';
    expect(await forget(redis, keys, now)).toBe(true);
    expect(await forget(redis, keys, now)).toBe(false);
    expect(await redis.exists(listsOf().index, fleet.owners)).toBe(0);
  });

  test('is listed as closed until its state expires', async () => {
    const close = async (session: string, listedMs?: number) => {
      const closed = sessionKeys(keys.namespace, keys.tenant, session);
      await redis.zadd(listsOf().index, 1_000, session);
      expect(await forget(redis, closed, '1000', listedMs)).toBe(true);
    };
    const listed = () => redis.zrange(listsOf().closed, '0', '-1');
    await close('gone');
    expect(await redis.exists(listsOf().closed)).toBe(0);
    await close('first', 1);
    await expect.poll(() => redis.exists(listsOf().closed)).toBe(0);
    await close('second', 60_000);
    await redis.zadd(listsOf().closed, 1, 'over');
    await close('third', 70_000);
    expect(await listed()).toEqual(['second', 'third']);
    expect(await redis.pttl(listsOf().closed)).toBeGreaterThan(60_000);
  });

  test('leaves a list of closed sessions that is too long, the oldest first', async () => {
    const expiry = Date.now() + 60_000;
    const many = Array.from({ length: LIMITS.closedSessions }, (_, index) => [
      String(expiry + index / 1_000),
      `closed-${index}`,
    ]);
    await redis.call('ZADD', [listsOf().closed, ...many.flat()]);
    await redis.zadd(listsOf().index, 1_000, keys.session);
    await forget(redis, keys, '1000', 120_000);
    expect(await redis.zcard(listsOf().closed)).toBe(LIMITS.closedSessions);
    expect(await redis.zrange(listsOf().closed, '0', '0')).toEqual(['closed-1']);
  });

  test('has keys only below its prefix, except the index, the owners and its job', async () => {
    await submit(redis, keys, newSubmission(await openSession(redis, keys)));
    const names = await redis.keys(`${keys.namespace}:*`);
    expect(names.filter((name) => !name.startsWith(keys.prefix))).toEqual([]);
  });
});
