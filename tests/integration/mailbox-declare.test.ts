import { append, declare, finish, submit, take } from '@shellfleet/mailbox';
import {
  acquire,
  createSessionJobs,
  declareOwned,
  newSessionJob,
  placementClass,
  renew,
  type SessionJobs,
  sessionJobLockKey,
} from '@shellfleet/placement';
import { type FleetKeys, fleetKeys, sessionsQueue, specKey } from '@shellfleet/protocol';
import { connectRedis } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { describe, expect, test, vi } from 'vitest';
import { startRedisProxy } from '../chaos/inject/redis-proxy.ts';
import { idsOf, outcomesOf, readEvents } from '../support/invariants.ts';
import {
  finishAs,
  newKeys,
  newSubmission,
  openSession,
  own,
  pieceAfter,
  submitSome,
} from '../support/mailbox-session.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

// Redis was restored from an older state, or is empty, so that a host has newer data than Redis.

const isOffered = (name: string) => name === CLASS;
const placement = { policy: 'docker', priority: 3, labels: {}, sealedWith: '1.key' } as const;
const CLASS = placementClass(placement);

function startJobs(redis: Redis, fleet: FleetKeys): Promise<SessionJobs> {
  return createSessionJobs({
    redis,
    fleet,
    hostId: 'h1',
    offers: isOffered,
    lockMsOf: () => 30_000,
    stalledIntervalMs: 1_000,
  });
}

/** Starts a session on host h1 of a separate Redis, with one running command. `declared` is what h1 has in memory. */
async function startOwned() {
  const server = await startOwnRedis();
  const { redis } = await connectRedis(server.url, 'host', 'test');
  const keys = newKeys();
  const fleet = fleetKeys(keys.namespace);
  const generation = await openSession(redis, keys);
  const submission = newSubmission(generation);
  await submit(redis, keys, submission);
  const owner = await own(redis, keys);
  const taken = await take(owner);
  if (taken.type !== 'started') throw new Error(taken.type);
  const piece = pieceAfter(taken.entry, 'before\n');
  await append(owner, submission.entryId, [piece]);
  const stored = { stdout: piece.rawTo, stderr: 0, seq: 1 };
  const declared = {
    ...{
      generation,
      spec: 'sealed spec',
      placementClass: 'docker',
      placement: JSON.stringify(placement),
      createdAt: 1,
      driven: false,
    },
    ...{ epoch: 1, epochBase: 0, sandbox: 'box', running: { entry: taken.entry, stored } },
  };
  const { data } = newSessionJob(keys, generation, placement);
  const job = { tenant: keys.tenant, session: keys.session, placementClass: CLASS, data };
  const held = { job, fence: owner.fence, lockMs: 30_000, jobData: JSON.stringify(data), priority: 3 };
  const lock = sessionJobLockKey(fleet, CLASS, keys);
  const close = async () => {
    redis.disconnect();
    await server[Symbol.asyncDispose]();
  };
  return { server, redis, keys, fleet, owner, taken, stored, declared, held, lock, [Symbol.asyncDispose]: close };
}

describe('a host that declares its session to Redis', () => {
  test('restores the session, its job and its running command in an empty Redis', async () => {
    await using it = await startOwned();
    const { redis, keys, fleet, owner, declared, held, stored } = it;
    await redis.flushall();
    for (let time = 0; time < 2; time += 1) {
      expect(await declareOwned(redis, fleet, 'h1', [held])).toEqual([]);
      expect(await declare(owner, declared)).toEqual({ type: 'declared' });
    }
    const { id } = declared.running.entry;
    const more = pieceAfter({ offsets: stored, seq: stored.seq }, 'after\n');
    expect(await append(owner, id, [more])).toMatchObject({ type: 'stored' });
    expect(await finish(owner, id, finishAs('success', true))).toMatchObject({
      type: 'finished',
      next: { type: 'empty' },
    });
    const events = await readEvents(redis, keys);
    expect(events.map(({ type }) => type)).toEqual([
      'command.accepted',
      'command.started',
      'command.output',
      'command.completed',
    ]);
    expect(await redis.hgetall(keys.state)).toMatchObject({ phase: 'open', shell: 'h1 box', epoch: '1' });
    expect(await redis.get(specKey(keys))).toBe('sealed spec');
    // The next fence is above the declared one, and the restored job can be listed and ended.
    expect(await acquire(redis, fleet, held.job, 'h1', 30_000)).toEqual({ type: 'acquired', fence: owner.fence + 1 });
    const jobs = await startJobs(redis, fleet);
    expect(await jobs.listOwn()).toEqual([held.job]);
    await jobs.remove(held.job);
    expect([await jobs.listOwn(), await jobs.has(held.job)]).toEqual([[], false]);
    await jobs.close();
  });

  test('continues its running command, and loses another one that an older Redis shows running', async () => {
    await using it = await startOwned();
    const { redis, keys, owner, declared } = it;
    const { id } = declared.running.entry;
    const [earlier = ''] = await submitSome(redis, keys, declared.generation, 1);
    // Sets the older state of Redis: `earlier` ran, and the command that now runs waited behind it.
    await redis.hset(keys.state, 'running', earlier, 'fence', '0', 'host', 'h0');
    await redis.hset(`${keys.prefix}record:${earlier}`, 'state', 'running');
    await redis.hset(`${keys.prefix}record:${id}`, 'state', 'waiting', 'stdout', 0, 'seq', 0);
    await redis.del(keys.queue);
    await redis.rpush(keys.queue, id);
    expect(await declare(owner, declared)).toEqual({ type: 'declared' });
    expect(await take(owner)).toMatchObject({
      type: 'running',
      entry: { id, offsets: { stdout: 7, stderr: 0 }, seq: 1 },
    });
    expect(await redis.llen(keys.queue)).toBe(0);
    await finish(owner, id, finishAs('success'));
    const events = await readEvents(redis, keys);
    expect([...outcomesOf(events)]).toEqual([
      [earlier, 'lost'],
      [id, 'success'],
    ]);
    expect(idsOf(events, 'command.completed')).toEqual([earlier, id]);
  });

  test('loses the session, and changes nothing, if Redis has a higher fence', async () => {
    await using it = await startOwned();
    const { redis, keys, fleet, owner, declared, held, lock } = it;
    await redis.hset(fleet.owners, keys.member, `${owner.fence + 1} h2`);
    await redis.hset(keys.state, 'fence', owner.fence + 1, 'host', 'h2');
    await redis.set(lock, 'h2');
    const before = await redis.hgetall(keys.state);
    expect(await declareOwned(redis, fleet, 'h1', [held])).toEqual([held]);
    expect(await declare(owner, declared)).toEqual({ type: 'fenced' });
    expect([await redis.hgetall(keys.state), await redis.get(lock)]).toEqual([before, 'h2']);
  });

  test('does not revive an ended command or overwrite newer values in Redis', async () => {
    await using it = await startOwned();
    const { redis, keys, owner, declared } = it;
    const { id } = declared.running.entry;
    await finish(owner, id, finishAs('success'));
    const before = await redis.hgetall(`${keys.prefix}record:${id}`);
    expect(await declare(owner, declared)).toEqual({ type: 'declared' });
    expect(await redis.hgetall(`${keys.prefix}record:${id}`)).toEqual(before);
    expect(await redis.hexists(keys.state, 'running')).toBe(0);
  });

  test("does not store output again that Redis has without the host's knowledge", async () => {
    await using it = await startOwned();
    const { redis, keys, owner, declared } = it;
    const { entry, stored } = declared.running;
    const second = pieceAfter({ offsets: stored, seq: stored.seq }, 'second\n');
    await append(owner, entry.id, [second]);
    const before = await redis.hgetall(`${keys.prefix}record:${entry.id}`);
    expect(await declare(owner, declared)).toEqual({ type: 'declared' });
    expect(await redis.hgetall(`${keys.prefix}record:${entry.id}`)).toEqual(before);
    expect(await append(owner, entry.id, [second])).toMatchObject({ type: 'misplaced' });
    expect(idsOf(await readEvents(redis, keys), 'command.output')).toEqual([entry.id, entry.id]);
  });

  test('removes the job from the queue of an older Redis', async () => {
    await using it = await startOwned();
    const { redis, fleet, held, lock } = it;
    const jobs = await startJobs(redis, fleet);
    const others = await createSessionJobs({
      ...{ redis, fleet, hostId: 'h2', offers: isOffered, lockMsOf: () => 30_000, stalledIntervalMs: 1_000 },
    });
    await jobs.ensure(newSessionJob(held.job, '1', placement));
    const queue = `${fleet.sessionQueues}:${sessionsQueue(CLASS, held.job.tenant)}`;
    expect(await redis.zcard(`${queue}:prioritized`)).toBe(1);
    expect(await declareOwned(redis, fleet, 'h1', [held])).toEqual([]);
    expect({
      waits: await redis.zrange(`${queue}:prioritized`, '0', '-1'),
      fetched: await others.fetch(),
      lock: await redis.get(lock),
    }).toEqual({ waits: [], fetched: [], lock: 'h1' });
    await others.close();
    await jobs.close();
  });

  test('can declare and renew leases in a full Redis', async () => {
    await using it = await startOwned();
    const { redis, fleet, owner, declared, held, lock } = it;
    await it.server.redis.config('SET', 'maxmemory', '1');
    expect((await renew(redis, fleet, 'h1', [held])).lost).toEqual([]);
    await redis.del(lock);
    expect((await renew(redis, fleet, 'h1', [held])).lost).toEqual([]);
    expect(await redis.get(lock)).toBe('h1');
    expect(await declareOwned(redis, fleet, 'h1', [held])).toEqual([]);
    expect(await declare(owner, declared)).toEqual({ type: 'declared' });
  });
});

describe('a job whose reply was lost', () => {
  test('counts as a job of its host', async () => {
    await using server = await startOwnRedis();
    await using proxy = await startRedisProxy(server.url);
    const fleet = fleetKeys('lost-reply');
    const through = await connectRedis(proxy.url, 'host', 'test');
    const job = newSessionJob({ tenant: 't1', session: 's1' }, '1', placement);
    const jobs = await startJobs(through.redis, fleet);
    await jobs.ensure(job);
    // The first two calls of fetch() only look for a job, as its class is new to the host. The third one gets the job,
    // and its reply is lost.
    const evalsha = through.redis.evalsha.bind(through.redis) as (...args: unknown[]) => Promise<unknown>;
    let calls = 0;
    vi.spyOn(through.redis, 'evalsha').mockImplementation((...args: unknown[]) => {
      calls += 1;
      if (calls === 3) proxy.loseReply();
      return evalsha(...args);
    });
    await expect(jobs.fetch()).rejects.toThrow();
    const own = await until(
      () => jobs.listOwn().catch(() => []),
      (found) => found.length > 0,
    );
    expect(own.map(({ session }) => session)).toEqual(['s1']);
    await jobs.remove(own[0] as (typeof own)[number]);
    expect(await jobs.listOwn()).toEqual([]);
    await jobs.close();
    through.redis.disconnect();
  });
});
