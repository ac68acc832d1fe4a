import { setTimeout as delay } from 'node:timers/promises';
import {
  createSessionJobs,
  newSessionJob,
  type Placement,
  type PlacementClass,
  QueuedSessions,
  type SessionJob,
  type SessionJobs,
  sessionJobLockKey,
} from '@shellfleet/placement';
import { type FleetKeys, fleetKeys, sessionJobId, sessionsQueue } from '@shellfleet/protocol';
import { connectRedis } from '@shellfleet/redis';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

let own: OwnRedis;
let fleet: FleetKeys;
let queue: QueuedSessions;
let namespaces = 0;
const opened: { redis: Redis; jobs?: SessionJobs }[] = [];

beforeAll(async () => {
  own = await startOwnRedis();
});
afterAll(() => own?.[Symbol.asyncDispose]());
beforeEach(async () => {
  fleet = fleetKeys(`placement-${++namespaces}`);
  const { redis } = await connectRedis(own.url, 'producer', 'producer');
  opened.push({ redis });
  queue = new QueuedSessions(redis, fleet, { enter: (call) => call() });
});
afterEach(async () => {
  for (const { redis, jobs } of opened.splice(0)) {
    await jobs?.close();
    redis.disconnect();
  }
});

async function startHost(
  hostId: string,
  offers: PlacementClass[],
  lockMs = 30_000,
  serves = async (_job: SessionJob) => true,
): Promise<SessionJobs> {
  const { redis } = await connectRedis(own.url, 'host', hostId);
  const jobs = await createSessionJobs({
    ...{ redis, fleet, hostId, lockMsOf: () => lockMs, serves, stalledIntervalMs: 100 },
    offers: (name) => offers.includes(name),
  });
  opened.push({ redis, jobs });
  return jobs;
}

const jobFor = (session: string, placement: Partial<Placement> = {}) =>
  newSessionJob({ tenant: 'acme', session }, '1', {
    policy: 'docker',
    priority: 0,
    labels: {},
    sealedWith: '',
    ...placement,
  });

async function add(session: string, placement: Partial<Placement> = {}): Promise<void> {
  await queue.ensureJob(jobFor(session, placement));
  // Two jobs of the same millisecond have waited equally long.
  await delay(2);
}

async function fetchAll(jobs: SessionJobs): Promise<string[]> {
  const sessions: string[] = [];
  for (;;) {
    const [job] = await jobs.fetch();
    if (job === undefined) return sessions;
    sessions.push(job.session);
  }
}

async function fetched(jobs: SessionJobs): Promise<SessionJob> {
  const [job] = await jobs.fetch();
  if (job === undefined) throw new Error('No job was waiting.');
  return job;
}

/** Returns the jobs that wait in a class: those without priority, then the others. */
async function waitingIn(name: PlacementClass): Promise<string[]> {
  const keys = `${fleet.sessionQueues}:${sessionsQueue(name, 'acme')}:`;
  const plain = await own.redis.lrange(`${keys}wait`, '0', '-1');
  return [...plain.reverse(), ...(await own.redis.zrange(`${keys}prioritized`, '0', '-1'))];
}

const lockOf = (name: PlacementClass, session: string) => sessionJobLockKey(fleet, name, { tenant: 'acme', session });

describe('the queues of sessions', () => {
  // PLACEMENT-3
  test('give a host only sessions of the classes that it offers', async () => {
    const [docker, host] = [await startHost('h1', ['docker']), await startHost('h2', ['host'])];
    await add('in-a-container');
    await add('on-the-host', { policy: 'host', labels: { team: 'build' } });
    expect(await fetchAll(docker)).toEqual(['in-a-container']);
    expect(await waitingIn('host')).toEqual([sessionJobId('acme', 'on-the-host')]);
    expect(await fetched(host)).toEqual({
      tenant: 'acme',
      session: 'on-the-host',
      placementClass: 'host',
      data: { generation: '1', policy: 'host', priority: 0, labels: { team: 'build' }, sealedWith: '' },
    });
  });

  test('give a host with two classes sessions by priority, then by waiting time', async () => {
    const both = await startHost('h1', ['docker', 'host']);
    await add('d-late', { priority: 5 });
    await add('h-first', { policy: 'host' });
    await add('d-second');
    await add('h-soon', { policy: 'host', priority: 2 });
    await add('h-third', { policy: 'host' });
    expect(await fetchAll(both)).toEqual(['h-first', 'd-second', 'h-third', 'h-soon', 'd-late']);
  });

  const PARTICULAR = 'docker+particular';
  const particular = (session: string, priority = 0) => add(session, { particular: true, priority });

  test('keep the places of particular sessions that a host cannot run', async () => {
    const checked: string[] = [];
    const choosy = await startHost('h1', ['docker', PARTICULAR], 30_000, async ({ session }) => {
      checked.push(session);
      return !session.startsWith('root');
    });
    await particular('root-1');
    await particular('a');
    await add('plain');
    await particular('root-2', 3);
    await particular('b', 3);
    expect(await fetchAll(choosy)).toEqual(['a', 'plain', 'b']);
    const rest = ['root-1', 'root-2'];
    expect(await waitingIn(PARTICULAR)).toEqual(rest.map((session) => sessionJobId('acme', session)));
    // The host decided once about each particular session, and about no other session.
    expect(checked.sort()).toEqual(['a', 'b', ...rest]);
    expect(await fetchAll(await startHost('h2', [PARTICULAR]))).toEqual(rest);
  });

  test('find a session behind a thousand others at a bounded cost per look', async () => {
    const host = await startHost('h1', [PARTICULAR], 30_000, async ({ session }) => session === 'mine');
    await Promise.all(
      Array.from({ length: 1_000 }, (_, n) => queue.ensureJob(jobFor(`root-${n}`, { particular: true }))),
    );
    await particular('mine');
    const found = await until(
      () => host.fetch(),
      (jobs) => jobs.length > 0,
    );
    expect(found).toMatchObject([{ session: 'mine' }]);
  });

  test('give each session to one of several simultaneous hosts, and leave none', async () => {
    const hosts = await Promise.all(['h1', 'h2', 'h3'].map((id) => startHost(id, ['docker', PARTICULAR])));
    const sessions = Array.from({ length: 60 }, (_, n) => `s-${n}`);
    await Promise.all(
      sessions.map((session, n) => queue.ensureJob(jobFor(session, n % 2 ? { particular: true } : {}))),
    );
    const taken = (await Promise.all(hosts.map(fetchAll))).flat();
    expect(taken.sort()).toEqual(sessions.sort());
  });

  test('keep the priority of a session that is added again', async () => {
    const host = await startHost('h1', ['docker']);
    await add('waits-5', { priority: 5 });
    await add('waits-0');
    await add('lost-its-job', { priority: 5 });
    const bull = new Queue(sessionsQueue('docker', 'acme'), { connection: own.redis, prefix: fleet.sessionQueues });
    await bull.remove(sessionJobId('acme', 'lost-its-job'));
    await bull.close();
    await add('came-later', { priority: 9 });
    expect(await host.has(jobFor('lost-its-job'))).toBe(false);
    await host.ensure(jobFor('lost-its-job', { priority: 5 }));
    // A second call changes nothing.
    await host.ensure(jobFor('lost-its-job', { priority: 0 }));
    expect(await host.has(jobFor('lost-its-job'))).toBe(true);
    expect(await waitingIn('docker')).toEqual(
      ['waits-0', 'waits-5', 'lost-its-job', 'came-later'].map((session) => sessionJobId('acme', session)),
    );
    expect(await fetchAll(host)).toEqual(['waits-0', 'waits-5', 'lost-its-job', 'came-later']);
  });

  // PLACEMENT-2
  test('give a job whose lock expired to the next host, before waiting ones', async () => {
    const lost = await startHost('h1', ['docker', 'host'], 50);
    await add('taken-over', { policy: 'host', priority: 7 });
    expect((await fetched(lost)).session).toBe('taken-over');
    await add('waits', { policy: 'host' });
    const [docker, host] = [await startHost('h2', ['docker']), await startHost('h3', ['host'])];
    await lost.close();
    await until(
      async () => {
        await host.requeueStalled();
        return waitingIn('host');
      },
      (waiting) => waiting.length === 2,
    );
    expect(await docker.fetch()).toEqual([]);
    expect(await fetchAll(host)).toEqual(['taken-over', 'waits']);
  });

  // PLACEMENT-1
  test('return the sessions of a restarted host in every class', async () => {
    const before = await startHost('h1', ['docker', 'host']);
    await add('a');
    await add('b', { policy: 'host' });
    expect(await fetchAll(before)).toEqual(['a', 'b']);
    await before.close();
    await startHost('h2', ['docker']);
    const after = await startHost('h1', ['docker']);
    const owned = (await after.listOwn()).sort((a, b) => a.session.localeCompare(b.session));
    expect(owned.map(({ session, placementClass }) => [session, placementClass])).toEqual([
      ['a', 'docker'],
      ['b', 'host'],
    ]);
    // The host can renew both, and end both.
    expect(await after.renew(owned.map((job) => ({ job, lockMs: 60_000 })))).toEqual([]);
    expect(await own.redis.pttl(lockOf('host', 'b'))).toBeGreaterThan(30_000);
    for (const job of owned) await after.remove(job);
    expect(await after.listOwn()).toEqual([]);
  });

  test('at a renewal, report locks that another host has taken, and restore expired locks', async () => {
    const host = await startHost('h1', ['docker', 'host']);
    await add('kept');
    await add('ran-out', { policy: 'host' });
    await add('stolen', { policy: 'host' });
    const leases = [];
    for (let n = 0; n < 3; n += 1) {
      const job = await fetched(host);
      const acquired = await host.acquire(job);
      leases.push({ job, lockMs: 20_000, ...(acquired.type === 'acquired' ? { fence: acquired.fence } : {}) });
    }
    await own.redis.del(lockOf('host', 'ran-out'));
    await own.redis.set(lockOf('host', 'stolen'), 'h2');
    expect((await host.renew(leases)).map(({ session }) => session)).toEqual(['stolen']);
    expect(await own.redis.get(lockOf('host', 'ran-out'))).toBe('h1');
  });

  test('ignore the job of an earlier generation in another queue', async () => {
    const [docker, host] = [await startHost('h1', ['docker']), await startHost('h2', ['host'])];
    await add('s');
    await queue.ensureJob({ ...jobFor('s', { policy: 'host' }) });
    const owned = await fetched(host);
    expect(await host.acquire(owned)).toEqual({ type: 'acquired', fence: 1 });
    const left = await fetched(docker);
    expect(await docker.acquire(left)).toEqual({ type: 'held-in-other-class', holder: 'h2' });
    await host.remove(owned);
    expect(await docker.acquire(left)).toEqual({ type: 'acquired', fence: 2 });
  });

  test('close what was not used for the longest time, and open it again', async () => {
    const redis = opened[0]?.redis as Redis;
    const tenants = Array.from({ length: 300 }, (_, n) => `tenant-${n}`);
    const { data } = jobFor('s');
    await Promise.all(tenants.map((tenant) => queue.ensureJob({ tenant, session: 's', data })));
    // Each of BullMQ's objects listens to the connection.
    await expect.poll(() => redis.listenerCount('ready')).toBeLessThan(tenants.length / 2);
    const lines = (await queue.lines()).sort((a, b) => a.tenant.localeCompare(b.tenant));
    expect(lines).toEqual(tenants.sort().map((tenant) => ({ tenant, placementClass: 'docker', held: 0, waiting: 1 })));
    await expect.poll(() => redis.listenerCount('ready')).toBeLessThan(tenants.length / 2);
  });

  test('drop a job that names no session', async () => {
    const host = await startHost('h1', ['docker']);
    const bull = new Queue(sessionsQueue('docker', 'acme'), { connection: own.redis, prefix: fleet.sessionQueues });
    await bull.add('session', {}, { jobId: 'stray', removeOnComplete: true });
    await bull.close();
    await add('s');
    expect(await fetchAll(host)).toEqual(['s']);
    expect((await own.redis.keys(`${fleet.sessionQueues}:*stray*`)).length).toBe(0);
  });

  test('forget a queue that a client has noted with no name of a class', async () => {
    const host = await startHost('h1', ['docker']);
    const { redis } = opened[0] as (typeof opened)[number];
    for (const name of ['sessions-docker other@acme', 'sessions-@acme', 'sessions-docker@a:b']) {
      await redis.rpush(`${fleet.sessionQueues}:${name}:wait`, 'x');
      await redis.lpush(fleet.noted, name);
    }
    await add('waits');
    expect(await fetchAll(host)).toEqual(['waits']);
    expect(await redis.zrange(fleet.queues, '0', '-1')).toEqual([sessionsQueue('docker', 'acme')]);
  });

  test('give a job with invalid data to a host, which can refuse it', async () => {
    const host = await startHost('h1', ['docker']);
    await add('s');
    await own.redis.hset(
      `${fleet.sessionQueues}:${sessionsQueue('docker', 'acme')}:${sessionJobId('acme', 's')}`,
      'data',
      '{"policy":1}',
    );
    expect(await fetched(host)).toEqual({ tenant: 'acme', session: 's', placementClass: 'docker' });
  });

  // PLACEMENT-4
  test('share one connection for all classes of a host', async () => {
    const host = await startHost('h1', ['docker', 'host']);
    await add('a');
    await add('b', { policy: 'host' });
    await fetchAll(host);
    await host.listOwn();
    const clients = String(await own.redis.client('LIST'))
      .trim()
      .split('\n');
    const names = clients.map((line) => / name=(\S*)/.exec(line)?.[1]);
    expect(names.filter((name) => name !== '').sort()).toEqual(['h1', 'producer']);
    // The connection without a name belongs to the test.
    expect(names.filter((name) => name === '').length).toBe(1);
  });

  test('work after an outage during which a host used one for the first time', async () => {
    const host = await startHost('h1', ['docker']);
    await add('s');
    const job = await fetched(host);
    await own.kill();
    // The calls before and after the connection has noticed the outage fail in different ways.
    await expect(host.remove(job)).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    await expect(host.remove(job)).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    await own.start();
    await until(
      () =>
        host.remove(job).then(
          () => true,
          () => false,
        ),
      (removed) => removed,
    );
  });

  test('cost one call for an idle look, however many classes a host offers', async () => {
    const callsOfAnIdleLook = async (offers: PlacementClass[]) => {
      const { redis } = await connectRedis(own.url, 'host', 'idle');
      const jobs = await createSessionJobs({
        redis,
        fleet,
        hostId: 'h1',
        offers: (name) => offers.includes(name),
        lockMsOf: () => 1,
        stalledIntervalMs: 60_000,
      });
      opened.push({ redis, jobs });
      const sent = vi.spyOn(redis, 'sendCommand');
      // The first call loads the scripts.
      await jobs.fetch();
      sent.mockClear();
      expect(await jobs.fetch()).toEqual([]);
      return sent.mock.calls.map(([command]) => command.name);
    };
    expect(await callsOfAnIdleLook(['docker'])).toEqual(['evalsha']);
    expect(await callsOfAnIdleLook(['docker', PARTICULAR, 'host'])).toEqual(['evalsha']);
  });

  test('are asked once more when sessions begin to wait in a class', async () => {
    const { redis } = await connectRedis(own.url, 'host', 'asks');
    const asked: string[] = [];
    const jobs = await createSessionJobs({
      ...{ redis, fleet, hostId: 'h1', lockMsOf: () => 1_000, stalledIntervalMs: 60_000 },
      offers: (name) => asked.push(name) > 0 && name === 'docker',
    });
    opened.push({ redis, jobs });
    await jobs.fetch();
    await add('a', { policy: 'host' });
    await add('b');
    await add('c');
    const sent = vi.spyOn(redis, 'sendCommand');
    expect(await jobs.fetch()).toMatchObject([{ session: 'b' }]);
    expect(sent.mock.calls.length).toBe(3);
    sent.mockClear();
    expect(await jobs.fetch()).toMatchObject([{ session: 'c' }]);
    expect(sent.mock.calls.length).toBe(2);
    expect([...new Set(asked)].sort()).toEqual(['docker', 'host']);
  });

  test.each([0, 5])('keep the place of a session of priority %i that is put back', async (priority) => {
    const [one, two] = [await startHost('h1', ['docker']), await startHost('h2', ['docker'])];
    for (const session of ['a', 'b', 'c']) await add(session, { priority });
    const first = await fetched(one);
    await one.putBack(first);
    expect(await fetchAll(two)).toEqual(['a', 'b', 'c']);
    // Another host has the session now, so nothing changes.
    await one.putBack(first);
    expect(await fetchAll(one)).toEqual([]);
  });
});
