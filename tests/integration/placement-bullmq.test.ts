import { createRequire } from 'node:module';
import {
  BULLMQ_NAMES,
  createSessionJobs,
  declareOwned,
  NOT_HELD,
  newSessionJob,
  QueuedSessions,
  type SessionJobs,
} from '@shellfleet/placement';
import { type FleetKeys, fleetKeys, sessionJobId, sessionsQueue } from '@shellfleet/protocol';
import { connectRedis } from '@shellfleet/redis';
import { ErrorCode, Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';

// Compares what libs/placement uses of BullMQ's data, beyond BullMQ's public API, with the installed version of BullMQ.

const { version } = createRequire(import.meta.url)('bullmq/package.json') as { version: string };
const CLASS = 'docker';
const LOCK_MS = 30_000;

let own: OwnRedis;
let redis: Redis;
let fleet: FleetKeys;
let namespaces = 0;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  own = await startOwnRedis();
  redis = (await connectRedis(own.url, 'host', 'test')).redis;
});
afterAll(async () => {
  await Promise.allSettled(closing.map((close) => close()));
  redis?.disconnect();
  await own?.[Symbol.asyncDispose]();
});
const useNewFleet = () => {
  fleet = fleetKeys(`bullmq-${++namespaces}`);
};

function openBull(): { queue: Queue; worker: Worker } {
  const shared = { connection: redis, prefix: fleet.sessionQueues };
  const queue = new Queue(sessionsQueue(CLASS, 't'), shared);
  const worker = new Worker(sessionsQueue(CLASS, 't'), null, {
    ...{ ...shared, autorun: false, lockDuration: LOCK_MS, name: 'h1' },
  });
  closing.push(
    () => worker.close(true),
    () => queue.close(),
  );
  return { queue, worker };
}

async function openJobs(): Promise<{ sessions: QueuedSessions; host: SessionJobs }> {
  const host = await createSessionJobs({
    ...{
      redis,
      fleet,
      hostId: 'h1',
      offers: (name) => name === CLASS,
      lockMsOf: () => LOCK_MS,
      stalledIntervalMs: 1_000,
    },
  });
  closing.push(() => host.close());
  return { sessions: new QueuedSessions(redis, fleet, { enter: (call) => call() }), host };
}

/** Returns everything that Redis has of the queue, by the part of the key that follows the queue's name. */
async function readQueue(): Promise<Record<string, unknown>> {
  const prefix = `${fleet.sessionQueues}:${sessionsQueue(CLASS, 't')}:`;
  const data: Record<string, unknown> = {};
  for (const key of (await own.redis.keys(`${prefix}*`)).sort()) {
    const read: Record<string, () => Promise<unknown>> = {
      list: () => own.redis.lrange(key, '0', '-1'),
      zset: () => own.redis.zrange(key, '0', '-1'),
      hash: () => own.redis.hgetall(key),
      string: () => own.redis.get(key),
    };
    const type = await own.redis.type(key);
    data[key.slice(prefix.length)] = (await read[type]?.()) ?? `a ${type}`;
  }
  return data;
}

const jobFor = (session: string, priority = 0) =>
  newSessionJob({ tenant: 't', session }, '1', { policy: 'docker', priority, labels: {}, sealedWith: '' });
const idOf = (session: string) => sessionJobId('t', session);

/** Returns the message of a failure: what Shellfleet relies on, and what this version of BullMQ stores. */
const reportOf = (name: string, meaning: string, stored: unknown) =>
  `BullMQ ${version} no longer has '${name}' (${meaning}) as Shellfleet uses it. It stores ${JSON.stringify(stored, null, 1)}`;

describe('the data that BullMQ stores', () => {
  let stored: Record<string, unknown>;
  let job: Record<string, string>;
  let scores: number[];

  beforeAll(async () => {
    useNewFleet();
    const { queue, worker } = openBull();
    const add = (jobId: string, priority = 0) =>
      queue.add('session', { a: 1 }, { jobId, priority, removeOnComplete: true, removeOnFail: true });
    for (const id of ['held-1', 'held-2']) {
      await add(id);
      await worker.getNextJob('h1', { block: false });
    }
    for (const id of ['plain-1', 'plain-2']) await add(id);
    for (const id of ['first-5', 'second-5']) await add(id, 5);
    await add('first-3', 3);
    stored = await readQueue();
    job = (stored['held-1'] ?? {}) as Record<string, string>;
    const prioritized = `${fleet.sessionQueues}:${sessionsQueue(CLASS, 't')}:prioritized`;
    const members = await own.redis.zrange(prioritized, '0', '-1', 'WITHSCORES');
    scores = members.filter((_, index) => index % 2 === 1).map(Number);
  });

  const queueValues: Record<keyof typeof BULLMQ_NAMES.queue, unknown> = {
    wait: ['plain-2', 'plain-1'],
    prioritized: ['first-3', 'first-5', 'second-5'],
    active: ['held-2', 'held-1'],
  };
  test.each(Object.entries(queueValues))('has the key %s of a queue', (name, expected) => {
    const meaning = BULLMQ_NAMES.queue[name as keyof typeof BULLMQ_NAMES.queue];
    expect(stored[name], reportOf(name, meaning, stored)).toEqual(expected);
  });

  test('has scores by priority, then by a number that rises', () => {
    const parts = scores.map((score) => [Math.floor(score / 2 ** 32), score % 2 ** 32]);
    const meaning = BULLMQ_NAMES.queue.prioritized;
    expect(
      parts.map(([priority]) => priority),
      reportOf('prioritized', meaning, scores),
    ).toEqual([3, 5, 5]);
    expect(parts[2]?.[1], reportOf('prioritized', meaning, scores)).toBeGreaterThan(parts[1]?.[1] ?? 0);
  });

  test.each(Object.entries(BULLMQ_NAMES.job))('has the key %s of an active job', async (name, meaning) => {
    expect(stored[`held-1${name}`], reportOf(name, meaning, stored)).toBe('h1');
    const left = await own.redis.pttl(`${fleet.sessionQueues}:${sessionsQueue(CLASS, 't')}:held-1${name}`);
    expect(left, reportOf(name, meaning, { 'expires in (ms)': left })).toBeGreaterThan(LOCK_MS - 20_000);
  });

  const isTime = (text = '') => Math.abs(Date.now() - Number(text)) < 60_000;
  const fieldChecks: Record<keyof typeof BULLMQ_NAMES.fields, (value?: string) => boolean> = {
    name: (value) => value === 'session',
    data: (value) => value === '{"a":1}',
    timestamp: isTime,
    delay: (value) => value === '0',
    priority: (value) => value === '0',
    opts: (value = '{}') => JSON.parse(value).removeOnComplete === true,
    processedOn: isTime,
    pb: (value) => value === 'h1',
    ats: (value) => value === '1',
  };
  test.each(Object.entries(fieldChecks))('has the field %s of an active job', (name, isRight) => {
    const meaning = BULLMQ_NAMES.fields[name as keyof typeof BULLMQ_NAMES.fields];
    expect(isRight(job[name]), reportOf(name, meaning, job)).toBe(true);
  });
});

describe('the data that the scripts store', () => {
  beforeEach(useNewFleet);

  /** Returns the lists of the queue and the keys of its job, which are all that the scripts use. Times are replaced. */
  const usedOf = (stored: Record<string, unknown>) => {
    const isUsed = (key: string) => key in BULLMQ_NAMES.queue || key.startsWith(idOf('s'));
    const used = Object.fromEntries(Object.entries(stored).filter(([key]) => isUsed(key)));
    const job = used[idOf('s')] as Record<string, string> | undefined;
    if (job === undefined) return used;
    return { ...used, [idOf('s')]: { ...job, timestamp: 'time', ...(job.processedOn && { processedOn: 'time' }) } };
  };

  test.each([0, 5])('equals that of BullMQ for an active job of priority %i', async (priority) => {
    const { sessions, host } = await openJobs();
    await sessions.ensureJob(jobFor('s', priority));
    expect(await host.fetch()).toMatchObject([{ session: 's' }]);
    const ours = await readQueue();
    useNewFleet();
    await (await openJobs()).sessions.ensureJob(jobFor('s', priority));
    await openBull().worker.getNextJob('h1', { block: false });
    expect(usedOf(ours), `lock-job.lua differs from BullMQ ${version}`).toEqual(usedOf(await readQueue()));
  });

  test('equals that of BullMQ for a declared job', async () => {
    const { data } = jobFor('s', 5);
    const job = { tenant: 't', session: 's', placementClass: CLASS };
    const owned = { job, fence: 1, lockMs: LOCK_MS, jobData: JSON.stringify(data), priority: 5 };
    await declareOwned(redis, fleet, 'h1', [owned]);
    const ours = usedOf(await readQueue());
    useNewFleet();
    const { sessions, host } = await openJobs();
    await sessions.ensureJob({ ...jobFor('s', 5) });
    await host.fetch();
    const theirs = usedOf(await readQueue());
    const hashOf = (stored: Record<string, unknown>) => {
      const {
        processedOn: _on,
        pb: _by,
        ats: _count,
        opts = '{}',
        ...hash
      } = stored[idOf('s')] as Record<string, string>;
      return { ...hash, opts: JSON.parse(opts) };
    };
    expect(hashOf(ours), `declare.lua differs from BullMQ ${version}`).toEqual(hashOf(theirs));
  });

  test('is removed completely when BullMQ completes the job', async () => {
    const { sessions, host } = await openJobs();
    await sessions.ensureJob(jobFor('s', 5));
    const [job] = await host.fetch();
    if (job === undefined) throw new Error('No job waits.');
    await host.remove(job);
    expect(usedOf(await readQueue()), `BullMQ ${version} leaves data of a completed job`).toEqual({});
  });
});

describe("BullMQ's errors", () => {
  test('have the codes that keys.ts lists', () => {
    expect(ErrorCode, `BullMQ ${version} has other codes`).toMatchObject(NOT_HELD);
  });

  test.each([
    ['another host has', 'h2', NOT_HELD.JobLockMismatch],
    ['has no lock any more', undefined, NOT_HELD.JobLockNotExist],
  ])('report that a host cannot end a job that %s', async (_, holder, code) => {
    useNewFleet();
    const { queue, worker } = openBull();
    await queue.add('session', {}, { jobId: 's' });
    const job = await worker.getNextJob('h1', { block: false });
    const lock = `${fleet.sessionQueues}:${sessionsQueue(CLASS, 't')}:s:lock`;
    await (holder === undefined ? own.redis.del(lock) : own.redis.set(lock, holder));
    await expect(job?.moveToCompleted(null, 'h1', false)).rejects.toMatchObject({ code });
  });
});
