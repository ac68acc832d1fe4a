import { finish, forget, release, submit, sweep, take } from '@shellfleet/mailbox';
import {
  type FleetKeys,
  fleetKeys,
  type SessionKeys,
  sessionJobId,
  sessionKeys,
  sessionsQueue,
  tenantKeys,
} from '@shellfleet/protocol';
import { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  connectTestRedis,
  finishAs,
  newKeys,
  newSubmission,
  openSession,
  own,
  type TestRedis,
} from '../support/mailbox-session.ts';

// No accepted command waits forever. A producer adds the session to the index, submits, and adds the job. A host
// releases the session, removes the job, and looks for entries again. A process may die after each step. Upkeep walks
// the index, and adds a job for each unfinished session without one.

let connected: TestRedis;
let redis: Redis;
let keys: SessionKeys;
let fleet: FleetKeys;
let jobId: string;
let queue: Queue;
let worker: Worker;

beforeAll(async () => {
  connected = await connectTestRedis();
  redis = connected.redis;
});
afterAll(() => connected[Symbol.asyncDispose]());
beforeEach(() => {
  keys = newKeys();
  fleet = fleetKeys(keys.namespace);
  jobId = sessionJobId(keys.tenant, keys.session);
  const shared = { connection: redis, prefix: fleet.sessionQueues };
  queue = new Queue(sessionsQueue('docker', keys.tenant), shared);
  worker = new Worker(sessionsQueue('docker', keys.tenant), null, { ...shared, autorun: false, lockDuration: 60_000 });
});
afterEach(async () => {
  await Promise.allSettled([worker.close(true), queue.close()]);
});

const indexOf = () => tenantKeys(keys.namespace, keys.tenant).index;
const addToIndex = () => redis.zadd(indexOf(), Date.now(), keys.session);
const addJob = (id = jobId) => queue.add('session', {}, { jobId: id, removeOnComplete: true, removeOnFail: true });
const hasJob = async (id = jobId) => (await queue.getJob(id)) !== undefined;

/** Adds jobs as upkeep does. Returns the sessions that it gave a job. */
async function upkeep(): Promise<string[]> {
  const given: string[] = [];
  for (const session of await redis.zrange(indexOf(), '0', '-1')) {
    const found = sessionKeys(keys.namespace, keys.tenant, session);
    const { hasWork } = await sweep(redis, found);
    const id = sessionJobId(keys.tenant, session);
    if (!hasWork || (await hasJob(id))) continue;
    await addJob(id);
    given.push(found.member);
  }
  return given;
}

describe('an accepted entry', () => {
  test.each([
    [0, 'before the index'],
    [1, 'after the index'],
    [2, 'after the submit'],
    [3, 'after the job'],
  ])('gets a host if its producer dies after %i of its steps (%s)', async (steps) => {
    const generation = await openSession(redis, keys);
    const submission = newSubmission(generation);
    const all = [addToIndex, () => submit(redis, keys, submission), addJob];
    for (const step of all.slice(0, steps)) await step();
    expect(await upkeep()).toEqual(steps === 2 ? [keys.member] : []);
    const job = await worker.getNextJob('h1', { block: false });
    const isAccepted = steps >= 2;
    expect(job?.id).toBe(isAccepted ? jobId : undefined);
    expect((await redis.llen(keys.queue)) > 0).toBe(isAccepted);
    if (!isAccepted) return;
    const owner = await own(redis, keys, 'h1');
    expect(await take(owner)).toMatchObject({ type: 'started', entry: { id: submission.entryId } });
  });

  test.each([
    [1, 'after the release'],
    [2, 'after the job was removed'],
    [3, 'after it has looked again'],
  ])('gets a host if it arrives during the release by a dying host (%i: %s)', async (steps) => {
    const generation = await openSession(redis, keys);
    await addToIndex();
    await addJob();
    const job = await worker.getNextJob('h1', { block: false });
    const owner = await own(redis, keys, 'h1');
    const lookAgain = async () => {
      if ((await sweep(redis, keys)).hasWork) await addJob();
    };
    const all = [() => release(owner, 'queued'), () => job?.moveToCompleted(null, 'h1', false), lookAgain];
    for (const [index, step] of all.slice(0, steps).entries()) {
      await step();
      if (index > 0) continue;
      // Between release and removal the job is still there, so that the producer's addition changes nothing.
      expect(await submit(redis, keys, newSubmission(generation))).toMatchObject({ type: 'accepted', needsJob: true });
      await addJob();
    }
    await upkeep();
    if (steps === 1) {
      // The job still belongs to the dead host. Its lock expires, and the job is handed out again.
      expect(await hasJob()).toBe(true);
      await own(redis, keys, 'h2');
      return;
    }
    expect((await worker.getNextJob('h2', { block: false }))?.id).toBe(jobId);
  });

  test('either prevents a simultaneous release or is told that no host has the session', async () => {
    const generation = await openSession(redis, keys);
    for (let round = 0; round < 50; round += 1) {
      const owner = await own(redis, keys, 'h1');
      const other = redis.duplicate();
      const [submitted, released] = await Promise.all([
        submit(other, keys, newSubmission(generation)),
        release(owner, 'queued'),
      ]);
      other.disconnect();
      if (submitted.type !== 'accepted') throw new Error(submitted.type);
      expect([released.type, submitted.needsJob]).toEqual(
        released.type === 'busy' ? ['busy', false] : ['released', true],
      );
      const next = await own(redis, keys, 'h1');
      const taken = await take(next);
      if (taken.type === 'started') await finish(next, taken.entry.id, finishAs('success'));
      await release(next, 'queued');
    }
  });
});

describe('a session in the index', () => {
  test('is forgotten when its generation is over', async () => {
    await addToIndex();
    expect(await upkeep()).toEqual([]);
    const score = (await redis.zscore(indexOf(), keys.session)) ?? '';
    expect(await forget(redis, keys, score)).toBe(true);
    expect(await upkeep()).toEqual([]);
  });
});
