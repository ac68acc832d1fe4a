import { forget, grant, relock, submit } from '@shellfleet/mailbox';
import {
  type FleetKeys,
  fleetKeys,
  type SessionKeys,
  sessionJobId,
  sessionJobLockKey,
  sessionsQueue,
} from '@shellfleet/protocol';
import { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
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
  lock = sessionJobLockKey(fleet, 'docker', sessionJobId(keys.tenant, keys.session));
});

const grantTo = (host: string) => grant(redis, fleet, { ...keys, placementClass: 'docker' }, host, LOCK_MS, ['host']);

async function grantAnew(host: string): Promise<{ fence: number; host: string }> {
  await redis.set(lock, host);
  const granted = await grantTo(host);
  if (granted.type !== 'granted') throw new Error(granted.type);
  return { fence: granted.fence, host };
}

const relockAs = (owner: { fence: number; host: string }) =>
  relock(redis, fleet, { ...keys, placementClass: 'docker' }, owner, 2 * LOCK_MS);

test('the lock of a session job that BullMQ handed out is where keys.ts says, and names the host', async () => {
  const shared = { connection: redis, prefix: fleet.admission };
  const queue = new Queue(sessionsQueue('docker'), shared);
  const worker = new Worker(sessionsQueue('docker'), null, { ...shared, autorun: false, lockDuration: LOCK_MS });
  try {
    const jobId = sessionJobId(keys.tenant, keys.session);
    await queue.add('session', {}, { jobId, removeOnComplete: true, removeOnFail: true });
    expect(await grantTo('h1')).toEqual({ type: 'refused', holder: '' });
    expect((await worker.getNextJob('h1', { block: false }))?.id).toBe(jobId);
    expect(await redis.get(lock)).toBe('h1');
    expect(await redis.pttl(lock)).toBeGreaterThan(LOCK_MS - 5_000);
    expect(await grantTo('h1')).toMatchObject({ type: 'granted' });
    expect(await worker.extendJobLocks([jobId], ['h1'], 2 * LOCK_MS)).toEqual([]);
    expect(await redis.pttl(lock)).toBeGreaterThan(LOCK_MS);
  } finally {
    await Promise.allSettled([worker.close(true), queue.close()]);
  }
});

test('a fence rises with every grant, across all sessions (invariant 1)', async () => {
  await redis.set(lock, 'h1');
  const fences: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const granted = await grantTo('h1');
    if (granted.type === 'granted') fences.push(granted.fence);
  }
  expect(fences).toEqual([1, 2, 3]);
  expect(await redis.hgetall(fleet.owners)).toEqual({ [keys.member]: '3 h1' });
});

test('fences beyond 2^31 stay exact', async () => {
  await redis.set(lock, 'h1');
  await redis.set(fleet.fence, `${2 ** 40}`);
  expect(await grantTo('h1')).toEqual({ type: 'granted', fence: 2 ** 40 + 1 });
});

test('a host whose job another has is refused with the name of the other', async () => {
  await redis.set(lock, 'h2');
  expect(await grantTo('h1')).toEqual({ type: 'refused', holder: 'h2' });
  expect(await redis.exists(fleet.fence, fleet.owners)).toBe(0);
});

test('a missing lock is set again while it still names the caller', async () => {
  await redis.set(lock, 'h1');
  await grantTo('h1');
  await redis.del(lock);
  expect(await grantTo('h1')).toEqual({ type: 'granted', fence: 2 });
  expect(await redis.get(lock)).toBe('h1');
  expect(await redis.pttl(lock)).toBeGreaterThan(LOCK_MS - 5_000);
});

test('a missing lock is not set for a host that is not its last owner', async () => {
  expect(await grantTo('h1')).toEqual({ type: 'refused', holder: '' });
  await redis.set(lock, 'h2');
  await grantTo('h2');
  await redis.del(lock);
  expect(await grantTo('h1')).toMatchObject({ type: 'refused' });
  expect(await redis.exists(lock)).toBe(0);
});

test.each(['still there', 'expired'])('the last owner renews its lock, which is %s', async (lockIs) => {
  const owner = await grantAnew('h1');
  if (lockIs === 'expired') await redis.del(lock);
  expect(await relockAs(owner)).toBe(true);
  expect(await redis.get(lock)).toBe('h1');
  expect(await redis.pttl(lock)).toBeGreaterThan(LOCK_MS);
});

test('no other host, and no earlier fence of the same host, renews the lock of a session', async () => {
  const earlier = await grantAnew('h1');
  const owner = await grantAnew('h1');
  await redis.del(lock);
  expect(await relockAs(earlier)).toBe(false);
  expect(await relockAs({ ...owner, host: 'h2' })).toBe(false);
  expect(await redis.exists(lock)).toBe(0);
  await redis.set(lock, 'h2');
  expect(await relockAs(owner)).toBe(false);
  expect(await redis.get(lock)).toBe('h2');
});

test('a session whose life is over leaves the index and the owners, unless it was submitted to meanwhile', async () => {
  await redis.set(lock, 'h1');
  await grantTo('h1');
  await redis.zadd(fleet.index, 1_000, keys.member);
  const seen = (await redis.zscore(fleet.index, keys.member)) ?? '';
  await redis.zadd(fleet.index, 1_763_690_000_000, keys.member);
  expect(await forget(redis, fleet, keys.member, seen)).toBe(false);
  expect(await redis.hexists(fleet.owners, keys.member)).toBe(1);
  const now = (await redis.zscore(fleet.index, keys.member)) ?? '';
  expect(await forget(redis, fleet, keys.member, now)).toBe(true);
  expect(await forget(redis, fleet, keys.member, now)).toBe(false);
  expect(await redis.exists(fleet.index, fleet.owners)).toBe(0);
});

test('a session is known to nothing outside its own keys but the index, the owners and its job', async () => {
  await submit(redis, keys, newSubmission(await openSession(redis, keys)));
  const names = await redis.keys(`${keys.namespace}:*`);
  expect(names.filter((name) => !name.startsWith(keys.prefix))).toEqual([]);
});
