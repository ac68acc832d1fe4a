import { setTimeout as delay } from 'node:timers/promises';
import {
  createSessionJobs,
  newSessionJob,
  type Placement,
  QueuedSessions,
  type SessionJob,
  type SessionJobs,
  sessionJobLockKey,
} from '@shellfleet/placement';
import {
  type FleetKeys,
  fleetKeys,
  type SessionId,
  sessionJobId,
  sessionsQueue,
  tenantQueuesKey,
} from '@shellfleet/protocol';
import { connectRedis } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { usageDuring } from '../support/redis-usage.ts';
import { jain } from '../support/slot-times.ts';

// Which tenant gets the next free slot. The choice and the queues are real; only the time for which sessions hold their
// slots is simulated.

const OFFERS = ['docker', 'docker+particular', 'host'];

let own: OwnRedis;
let redis: Redis;
let fleet: FleetKeys;
let queue: QueuedSessions;
let namespaces = 0;

beforeAll(async () => {
  own = await startOwnRedis();
  redis = (await connectRedis(own.url, 'host', 'test')).redis;
});
afterAll(async () => {
  redis?.disconnect();
  await own?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  fleet = fleetKeys(`fair-${++namespaces}`);
  queue = new QueuedSessions(redis, fleet, { enter: (call) => call() });
});

const startHost = (
  hostId: string,
  weights: Record<string, number> = {},
  serves = async (_job: SessionJob) => true,
  quotas: () => Record<string, number> = () => ({}),
  offers = OFFERS,
): Promise<SessionJobs> =>
  createSessionJobs({
    ...{ redis, fleet, hostId, offers: (name) => offers.includes(name), lockMs: 60_000, stalledIntervalMs: 1_000 },
    ...{ serves, weights: () => weights, quotas },
  });

const jobFor = (tenant: string, session: string, placement: Partial<Placement> = {}) =>
  newSessionJob({ tenant, session }, '1', {
    ...{ policy: 'docker', priority: 0, labels: {}, sealedWith: '' },
    ...placement,
  });

const add = (tenant: string, session: string, placement: Partial<Placement> = {}) =>
  queue.ensureJob(jobFor(tenant, session, placement));

const addMany = (tenant: string, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => add(tenant, `${tenant}-${n}`)));

/** Fetches sessions as `<tenant>/<session>`. */
async function fetchNames(host: SessionJobs, most = 1_000): Promise<string[]> {
  const names: string[] = [];
  while (names.length < most) {
    const [job] = await host.fetch();
    if (job === undefined) break;
    names.push(`${job.tenant}/${job.session}`);
  }
  return names;
}

type Held = { job: SessionJob; from: number; until: number };

interface Simulated {
  slots: number;
  forMs: number;
  /** Tenants that always have sessions that wait. */
  tenants: readonly string[];
  weights?: Record<string, number>;
  /** Further sessions, each named `<tenant>/<session>`, and when it is added. */
  arrivals?: readonly { at: number; tenant: string; session: string }[];
}

/** Runs a host whose sessions hold their slots for simulated times. Returns what each session held. */
async function simulate(
  { slots, forMs, tenants, weights = {}, arrivals = [] }: Simulated,
  holdMs: (tenant: string, turn: number) => number,
): Promise<Held[]> {
  const host = await startHost('h1', weights);
  const turns = new Map<string, number>();
  const addNext = async (tenant: string) => {
    const turn = turns.get(tenant) ?? 0;
    turns.set(tenant, turn + 1);
    await add(tenant, `${tenant}-${turn}`);
  };
  for (const tenant of tenants) await Promise.all(Array.from({ length: slots }, () => addNext(tenant)));
  const all: Held[] = [];
  const open: Held[] = [];
  const coming = [...arrivals];
  for (let now = 0; now < forMs; ) {
    while (open.length < slots) {
      const jobs = await host.fetch({ most: slots - open.length });
      if (jobs.length === 0) throw new Error('No session waits.');
      for (const job of jobs) {
        const held = { job, from: now, until: now + holdMs(job.tenant, Number(job.session.split('-').at(-1))) };
        open.push(held);
        all.push(held);
        if (tenants.includes(job.tenant)) await addNext(job.tenant);
      }
    }
    open.sort((a, b) => a.until - b.until);
    now = Math.min(open[0]?.until ?? forMs, coming[0]?.at ?? forMs);
    while (coming[0] !== undefined && coming[0].at <= now) {
      const { tenant, session } = coming.shift() as (typeof coming)[number];
      await add(tenant, session);
    }
    while (open[0] !== undefined && open[0].until <= now) await host.remove((open.shift() as Held).job);
  }
  await host.close();
  return all;
}

/** Returns the slot time of each tenant within a window. */
function slotTimes(all: readonly Held[], tenants: readonly string[], from: number, until: number): number[] {
  return tenants.map((tenant) =>
    all
      .filter(({ job }) => job.tenant === tenant)
      .reduce((sum, held) => sum + Math.max(0, Math.min(held.until, until) - Math.max(held.from, from)), 0),
  );
}

describe('the next free slot', () => {
  test('goes to newcomers within 1.5 slot times behind 10,000 sessions of another tenant', async () => {
    await addMany('flood', 10_000);
    const slotMs = 1_500;
    const arrivals = Array.from({ length: 20 }, (_, n) => ({
      at: 4_000 + 1_733 * n,
      tenant: `newcomer-${n}`,
      session: 'first-0',
    }));
    const all = await simulate({ slots: 8, forMs: 45_000, tenants: ['flood'], arrivals }, () => slotMs);
    const waits = arrivals.map(({ at, tenant }) => {
      const held = all.find(({ job }) => job.tenant === tenant);
      return (held?.from ?? Number.POSITIVE_INFINITY) - at;
    });
    expect(waits.sort((a, b) => a - b)[18]).toBeLessThanOrEqual(1.5 * slotMs);
  });

  test('goes in turn to tenants that hold equally many', async () => {
    for (const tenant of ['a', 'b', 'c']) await addMany(tenant, 3);
    const host = await startHost('h1');
    const tenants = (await fetchNames(host)).map((name) => name.split('/')[0]);
    expect([0, 3, 6].map((at) => tenants.slice(at, at + 3).sort())).toEqual(Array(3).fill(['a', 'b', 'c']));
    await host.close();
  });

  test('counts the slots of a tenant on all hosts and in all classes', async () => {
    const [one, two] = [await startHost('h1'), await startHost('h2')];
    await add('a', 'on-the-host', { policy: 'host' });
    expect(await fetchNames(one)).toEqual(['a/on-the-host']);
    await add('a', 'second');
    await add('b', 'first');
    expect(await fetchNames(two)).toEqual(['b/first', 'a/second']);
    await Promise.all([one.close(), two.close()]);
  });

  test('does not depend on the priorities of different tenants’ sessions', async () => {
    await add('a', 'late', { priority: 9 });
    await add('b', 'second', { priority: 5, policy: 'host' });
    await add('b', 'first');
    const host = await startHost('h1');
    expect(await fetchNames(host)).toEqual(['a/late', 'b/first', 'b/second']);
    await host.close();
  });

  test('goes to the next tenant if the host cannot serve the fairest one', async () => {
    const choosy = await startHost('h1', {}, async ({ tenant }) => tenant !== 'a');
    await addMany('b', 40);
    expect(await fetchNames(choosy, 30)).toHaveLength(30);
    await Promise.all(Array.from({ length: 20 }, (_, n) => add('a', `root-${n}`, { particular: true })));
    // Session by session, 30 of the other tenant come before its next one.
    expect(await fetchNames(choosy, 1)).toEqual([expect.stringMatching(/^b\//)]);
    const other = await startHost('h2');
    expect(await fetchNames(other, 1)).toEqual([expect.stringMatching(/^a\//)]);
    await Promise.all([choosy.close(), other.close()]);
  });

  test('goes to no tenant at its quota, even if hosts fetch at once', async () => {
    await Promise.all([addMany('few', 20), addMany('constructor', 2)]);
    await add('few', 'on-the-host', { policy: 'host' });
    const quotas = () => ({ few: 3 });
    const hosts = await Promise.all(['h1', 'h2', 'h3'].map((id) => startHost(id, {}, undefined, quotas)));
    const turns = hosts.flatMap((host) =>
      [1, 2, 4].map(async (most) => (await host.fetch({ most })).map((job) => ({ host, job }))),
    );
    const taken = (await Promise.all(turns)).flat();
    const tenants = taken.map(({ job }) => job.tenant).sort();
    expect(tenants).toEqual(['constructor', 'constructor', 'few', 'few', 'few']);
    for (const { host, job } of taken.filter((one) => one.job.tenant === 'few').slice(0, 1)) {
      expect(await host.fetch()).toEqual([]);
      await host.remove(job);
      expect(await fetchNames(host)).toEqual([expect.stringMatching(/^few\//)]);
    }
    await Promise.all(hosts.map((host) => host.close()));
  });

  test('goes to no tenant that the host passes over', async () => {
    await addMany('many', 20);
    await add('few', 'only');
    const host = await startHost('h1');
    expect(await host.fetch({ most: 9, passedOver: ['many'] })).toMatchObject([{ tenant: 'few' }]);
    expect(await host.fetch({ most: 9, passedOver: ['many'] })).toEqual([]);
    expect(await host.fetch()).toMatchObject([{ tenant: 'many' }]);
    await host.close();
  });

  test('goes in this order to all sessions that a host takes at once', async () => {
    const quotas = () => ({ few: 2 });
    const host = await startHost('h1', { heavy: 2 }, undefined, quotas);
    await addMany('holds', 2);
    await fetchNames(host);
    for (const [tenant, count] of [
      ['holds', 5],
      ['heavy', 20],
      ['few', 20],
    ] as const)
      await addMany(tenant, count);
    const taken = (await host.fetch({ most: 11 })).map(({ tenant }) => tenant);
    const counts = new Map([['holds', 2]]);
    for (const tenant of taken) counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
    expect(Object.fromEntries(counts)).toEqual({ holds: 4, heavy: 7, few: 2 });
    expect(taken.slice(0, 3).sort()).toEqual(['few', 'heavy', 'heavy']);
    await host.close();
  });

  test('is taken with others at once, up to a live host’s part of a burst', async () => {
    const [one, two] = [await startHost('h1'), await startHost('h2')];
    const now = Date.now();
    await redis.zadd(fleet.hosts, now, 'h1', now - 3_000, 'h2', now - 60_000, 'silent');
    await addMany('a', 9);
    const counts: number[] = [];
    for (const host of [one, two, one, two]) counts.push((await host.fetch({ most: 32 })).length);
    expect(counts).toEqual([5, 2, 1, 1]);
    await Promise.all([one.close(), two.close()]);
  });

  test('is shared equally by 20 tenants in each minute', async () => {
    const tenants = Array.from({ length: 20 }, (_, n) => `t${n}`);
    const all = await simulate({ slots: 8, forMs: 120_000, tenants }, () => 1_500);
    for (let from = 0; from <= 60_000; from += 5_000) {
      expect(jain(slotTimes(all, tenants, from, from + 60_000))).toBeGreaterThanOrEqual(0.98);
    }
  });

  const SHORT = 1_000;
  const LONG = 60_000;
  test.each([
    ['some of a minute', 16, (_tenant: string, turn: number) => (turn % 20 ? SHORT : LONG)],
    ['one tenant of a minute each', 8, (tenant: string) => (tenant === 'two' ? LONG : SHORT)],
    ['two tenants of a minute each', 8, (tenant: string) => (tenant === 'two' ? SHORT : LONG)],
  ])('is shared by weight, with sessions of a second beside %s', async (_what, slots, holdMs) => {
    const tenants = ['one', 'two', 'five'];
    const weights = { two: 2, five: 5 };
    const all = await simulate({ slots, forMs: 300_000, tenants, weights }, holdMs);
    const times = slotTimes(all, tenants, 0, 300_000);
    const total = times.reduce((a, b) => a + b, 0);
    const shares = times.map((time) => time / total);
    for (const [index, wanted] of [1 / 8, 2 / 8, 5 / 8].entries()) {
      expect(Math.abs((shares[index] ?? 0) / wanted - 1)).toBeLessThan(0.05);
    }
  });
});

describe('the sessions of one tenant', () => {
  const START = Date.parse('2030-01-01T00:00:00Z');
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
  afterEach(() => void vi.useRealTimers());

  /** Adds a session that comes some minutes after the start. */
  async function addAt(minutes: number, session: string, placement: Partial<Placement> = {}): Promise<void> {
    vi.setSystemTime(START + minutes * 60_000);
    await add('a', session, placement);
  }

  test('wait as if they had come as many minutes later as their priority', async () => {
    await addAt(0, 'five', { priority: 5 });
    await addAt(0.5, 'thousand', { priority: 1_000 });
    await addAt(1, 'two', { priority: 2, policy: 'host' });
    await addAt(4.9, 'within');
    await addAt(5.1, 'after');
    await addAt(1_000.6, 'long-after');
    const host = await startHost('h1');
    const order = ['two', 'within', 'five', 'after', 'thousand', 'long-after'];
    expect(await fetchNames(host)).toEqual(order.map((session) => `a/${session}`));
    await host.close();
  });

  test('keep this order over all classes and priorities', async () => {
    const due = new Map<string, number>();
    const placements = [{}, { particular: true }, { policy: 'host' }] as const;
    for (let n = 0; n < 90; n += 1) {
      const [minutes, priority] = [n * 0.37, [0, 0, 1, 3, 10][(n * 7) % 5] as number];
      await addAt(minutes, `s-${n}`, { ...placements[n % 3], priority });
      due.set(`a/s-${n}`, minutes + priority);
    }
    const inOrder = [...due].sort(([, a], [, b]) => a - b).map(([name]) => name);
    const host = await startHost('h1');
    expect(await fetchNames(host)).toEqual(inOrder);
    await host.close();
  });

  test('begin with one that a host has lost', async () => {
    await addAt(0, 'due-earlier', { priority: 1 });
    await addAt(2, 'lost', { policy: 'host' });
    const [one, two] = [await startHost('h1', {}, undefined, undefined, ['host']), await startHost('h2')];
    expect(await fetchNames(one)).toEqual(['a/lost']);
    await redis.del(sessionJobLockKey(fleet, 'host', { tenant: 'a', session: 'lost' }));
    await two.requeueStalled();
    expect(await fetchNames(two)).toEqual(['a/lost', 'a/due-earlier']);
    await Promise.all([one.close(), two.close()]);
  });
});

describe('the place of a waiting session', () => {
  const CLASSES = new Set(OFFERS);
  const WEIGHTS = { two: 2, five: 5 };
  const placesOf = (tenant: string, sessions: readonly string[], placementClass = 'docker') =>
    queue.places(
      sessions.map((session) => ({ tenant, session })),
      placementClass,
      CLASSES,
    );

  test('is its place in the order in which hosts take sessions of all tenants', async () => {
    const host = await startHost('h1', WEIGHTS, undefined, () => ({ few: 3 }));
    await addMany('two', 5);
    await fetchNames(host);
    const added: [string, string, string][] = [];
    for (let n = 0; n < 60; n += 1) {
      const tenant = ['one', 'two', 'five', 'few'][(n * 7) % 4] as string;
      const placement = [{}, { particular: true }, { policy: 'host' }][n % 3] as Partial<Placement>;
      await add(tenant, `s-${n}`, { ...placement, priority: [0, 0, 2, 1][Math.floor(n / 4) % 4] as number });
      added.push([tenant, `s-${n}`, OFFERS[n % 3] as string]);
      await delay(2);
    }
    await host.publishDemand();
    const places = new Map<string, number>();
    for (const [tenant, session, placementClass] of added) {
      const [place] = await placesOf(tenant, [session], placementClass);
      if (place?.overQuota === 0) places.set(`${tenant}/${session}`, place.position);
      expect(place?.length).toBe(60);
    }
    const taken: string[] = [];
    for (let next = await fetchNames(host, 1); next.length > 0; next = await fetchNames(host, 1)) {
      taken.push(...next);
      // Of tenants that were given their last slots in the same millisecond, none is the first.
      await delay(2);
    }
    expect([...places].sort(([, a], [, b]) => a - b)).toEqual(taken.map((name, index) => [name, index + 1]));
    expect(taken.length).toBe(60 - 15 + 3);
    await host.close();
  });

  test('is known far behind, before and after hosts have told about other tenants', async () => {
    const host = await startHost('h1');
    await addMany('flood', 1_500);
    const [first, last, unknown] = ['flood-0', 'flood-1499', 'other'];
    expect((await placesOf('flood', [first, last, unknown])).map((place) => place?.position)).toEqual([
      1,
      1_500,
      undefined,
    ]);
    await addMany('newcomer', 2);
    await host.publishDemand();
    expect((await placesOf('flood', [first, last])).map((place) => place?.position)).toEqual([1, 1_502]);
    expect((await placesOf('newcomer', ['newcomer-1'])).map((place) => place?.position)).toEqual([4]);
    await host.close();
  });

  test('is told once a second by all hosts together, without the names of tenants', async () => {
    const [one, two] = [await startHost('h1'), await startHost('h2')];
    await add('acme', 's');
    await one.publishDemand();
    const told = await redis.get(fleet.demand);
    expect(told).toMatch(/"waiting":\{"docker":1\}/);
    expect(told).not.toContain('acme');
    await add('acme', 's2');
    await two.publishDemand();
    expect(await redis.get(fleet.demand)).toBe(told);
    await redis.pexpire(fleet.demand, 4_000);
    await two.publishDemand();
    expect(await redis.get(fleet.demand)).toMatch(/"waiting":\{"docker":2\}/);
    await Promise.all([one.close(), two.close()]);
  });
});

describe('a session that another host would serve better', () => {
  const startOther = (isWishedElsewhere: (job: SessionJob, image: string | undefined) => Promise<boolean>) =>
    createSessionJobs({
      ...{
        redis,
        fleet,
        hostId: 'other',
        offers: (name) => OFFERS.includes(name),
        lockMs: 60_000,
        stalledIntervalMs: 1_000,
      },
      ...{ isWishedElsewhere, serves: async ({ session }) => (session === 'named' ? { image: 'alpine' } : true) },
    });
  /** Lets a session have come earlier. */
  const age = (session: string, ms: number, name = 'docker') =>
    redis.hset(
      `${fleet.sessionQueues}:${sessionsQueue(name, 'a')}:${sessionJobId('a', session)}`,
      'timestamp',
      Date.now() - ms,
    );

  test('is left to it for 2 s from when it is next, then taken', async () => {
    const other = await startOther(async () => true);
    await add('a', 'near-b', { near: 'b' as SessionId });
    await add('a', 'plain');
    expect(await fetchNames(other)).toEqual(['a/plain']);
    expect(other.nextWishEndMs()).toSatisfy((ms) => ms > 1_000 && ms <= 2_000);
    const preferred = await startHost('h1');
    expect(await fetchNames(preferred)).toEqual(['a/near-b']);
    await add('a', 'near-c', { near: 'c' as SessionId });
    await age('near-c', 2_001);
    await redis.zadd(fleet.queues, 0, sessionsQueue('docker', 'a'));
    expect(await fetchNames(other)).toEqual(['a/near-c']);
    await Promise.all([other.close(), preferred.close()]);
  });

  test('waits no longer for it because others of its tenant are taken', async () => {
    const other = await startOther(async () => true);
    await add('a', 'near-b', { near: 'b' as SessionId });
    await age('near-b', 1_700);
    expect(await fetchNames(other)).toEqual([]);
    await add('a', 'plain');
    expect(await fetchNames(other)).toEqual(['a/plain']);
    const endMs = other.nextWishEndMs() ?? 0;
    expect(endMs).toSatisfy((ms: number) => ms > 0 && ms <= 300);
    await delay(endMs);
    expect(await fetchNames(other)).toEqual(['a/near-b']);
    await other.close();
  });

  test('is taken at once if no other host meets more of its wishes', async () => {
    const asked: (string | undefined)[] = [];
    const other = await startOther(async (_job, image) => {
      asked.push(image);
      return false;
    });
    for (const session of ['named', 'unnamed']) await add('a', session, { particular: true });
    await add('a', 'near-b', { near: 'b' as SessionId });
    await add('a', 'plain');
    expect((await fetchNames(other)).sort()).toEqual(['a/named', 'a/near-b', 'a/plain', 'a/unnamed']);
    // Nothing is asked about a session without wishes.
    expect(new Set(asked)).toEqual(new Set(['alpine', undefined]));
    expect(other.nextWishEndMs()).toBeUndefined();
    await other.close();
  });
});

describe('the set of queues', () => {
  test('loses a queue without jobs, and keeps one with an active job', async () => {
    const host = await startHost('h1');
    await add('a', 's');
    await add('b', 's', { policy: 'host' });
    const jobs = await host.fetch({ most: 2 });
    expect(await host.fetch()).toEqual([]);
    expect(await redis.zcard(fleet.queues)).toBe(2);
    for (const job of jobs) if (job.tenant === 'a') await host.remove(job);
    await host.requeueStalled();
    expect(await redis.zrange(fleet.queues, '0', '-1')).toEqual([sessionsQueue('host', 'b')]);
    const ofTenants = await Promise.all(['a', 'b'].map((tenant) => redis.smembers(tenantQueuesKey(fleet, tenant))));
    expect(ofTenants).toEqual([[], [sessionsQueue('host', 'b')]]);
    await host.close();
  });

  test('has the queue of a job that was added while a host forgot the queue', async () => {
    const host = await startHost('h1');
    const lpush = redis.lpush.bind(redis) as (...args: unknown[]) => Promise<number>;
    const noting = vi.spyOn(redis, 'lpush').mockImplementationOnce(async (...args: unknown[]) => {
      const noted = await lpush(...args);
      expect(await host.fetch()).toEqual([]);
      await host.requeueStalled();
      expect(await redis.exists(fleet.queues, fleet.waitingQueues)).toBe(0);
      return noted as never;
    });
    await add('a', 's');
    noting.mockRestore();
    expect(await fetchNames(host)).toEqual(['a/s']);
    await host.close();
  });

  test.each<[string, (keys: string) => Promise<unknown>]>([
    ['a text for its waiting jobs', (keys) => redis.set(`${keys}wait`, 'x')],
    ['a text for its active jobs', (keys) => redis.multi().del(`${keys}active`).set(`${keys}active`, 'x').exec()],
    ['a text for a job', (keys) => redis.multi().set(`${keys}x`, 'x').rpush(`${keys}wait`, 'x').exec()],
    [
      'a text for the job of a session',
      (keys) => redis.multi().set(`${keys}s~junk~x`, 'x').rpush(`${keys}wait`, 's~junk~x').exec(),
    ],
    ['a priority without end', (keys) => redis.zadd(`${keys}prioritized`, '+inf', 's~junk~x')],
    [
      'a time that is no number',
      (keys) => redis.multi().hset(`${keys}s~junk~x`, 'timestamp', 'nan').rpush(`${keys}wait`, 's~junk~x').exec(),
    ],
  ])('serves other tenants although a tenant has written %s', async (_what, write) => {
    const host = await startHost('h1', {}, undefined, () => ({ junk: 1 }));
    for (const tenant of ['a', 'junk', 'z']) await add(tenant, 's');
    await write(`${fleet.sessionQueues}:${sessionsQueue('docker', 'junk')}:`);
    const fetched = await fetchNames(host, 3);
    expect(fetched).toEqual(expect.arrayContaining(['a/s', 'z/s']));
    await redis.del(fleet.requeued);
    await host.requeueStalled();
    expect((await host.listOwn()).map(({ tenant }) => tenant)).toEqual(expect.arrayContaining(['a', 'z']));
    await host.close();
  });

  test('gets the queue of a job back when upkeep finds the job', async () => {
    const host = await startHost('h1');
    await add('a', 's');
    await redis.del(fleet.noted);
    expect(await host.fetch()).toEqual([]);
    expect(await host.has(jobFor('a', 's'))).toBe(true);
    expect(await fetchNames(host)).toEqual(['a/s']);
    await host.close();
  });

  test('gets back that jobs wait there within a search for lost locks', async () => {
    const host = await startHost('h1');
    await add('a', 's');
    expect(await redis.exists(fleet.waitingQueues)).toBe(0);
    await host.publishDemand();
    await redis.del(fleet.waitingQueues);
    expect(await host.fetch()).toEqual([]);
    await host.requeueStalled();
    expect(await fetchNames(host)).toEqual(['a/s']);
    await host.close();
  });

  test('costs a look nothing if nothing waits, and of other tenants little', async () => {
    const host = await startHost('h1');
    const callsOf = async (act: () => Promise<unknown>) => (await usageDuring([own.redis], act)).calls;
    const tenants = Array.from({ length: 300 }, (_, n) => `t${n}`);
    for (const tenant of tenants) await add(tenant, 's');
    expect(await fetchNames(host)).toHaveLength(tenants.length);
    const [read, look] = [await callsOf(async () => {}), await callsOf(() => host.fetch())];
    expect(look - read).toBeLessThan(10);
    await add('t0', 'next');
    expect((await callsOf(() => host.fetch())) - read).toBeLessThan(40);
    await host.close();
  });
});
