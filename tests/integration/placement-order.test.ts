import { setTimeout as delay } from 'node:timers/promises';
import { createSessionJobs, type Placement, type SessionJob, sessionJobLockKey } from '@shellfleet/placement';
import { hostOfferSchema, type SessionId, sessionJobId, sessionsQueue } from '@shellfleet/protocol';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  add,
  addMany,
  DOCKER,
  fetchNames,
  fleet,
  HOST,
  OFFERS,
  queue,
  redis,
  startHost,
  usePlacement,
} from '../support/open-placement.ts';

// In which order the sessions of a tenant get slots, what is known of it, and which host takes them.

usePlacement();

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
    const [one, two] = [await startHost('h1', {}, undefined, undefined, [HOST]), await startHost('h2')];
    expect(await fetchNames(one)).toEqual(['a/lost']);
    await redis.del(sessionJobLockKey(fleet, HOST, { tenant: 'a', session: 'lost' }));
    await two.requeueStalled();
    expect(await fetchNames(two)).toEqual(['a/lost', 'a/due-earlier']);
    await Promise.all([one.close(), two.close()]);
  });
});

describe('the place of a waiting session', () => {
  const able = {
    ...{ policies: ['docker', 'host'], sealKeys: ['key'], schema: 1, labels: { gpu: 'yes' } },
    allow: hostOfferSchema.parse({}),
  };
  const WEIGHTS = { two: 2, five: 5 };
  const placesOf = (tenant: string, sessions: readonly string[], placementClass = DOCKER) =>
    queue.places(
      sessions.map((session) => ({ tenant, session })),
      placementClass,
      [able],
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
      // Tenants that were given their last slots in the same millisecond have no order among them.
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

  test('counts the sessions with labels that the hosts have, and no others', async () => {
    const host = await startHost('h1');
    const added: [string, string, Partial<Placement>?][] = [
      ['a', 'plain'],
      ['a', 'labelled', { hosts: { gpu: 'yes' } }],
      ['b', 'labelled', { hosts: { gpu: 'yes' } }],
      ['b', 'elsewhere', { hosts: { gpu: 'no' } }],
      ['a', 'last'],
    ];
    for (const session of added) {
      await add(...session);
      // Sessions of two classes that came in the same millisecond have no order between them.
      await delay(2);
    }
    await host.publishDemand();
    expect(await placesOf('a', ['plain', 'last'])).toMatchObject([
      { position: 1, length: 4 },
      { position: 4, length: 4 },
    ]);
    expect(await placesOf('a', ['labelled'], 'docker,gpu=yes~1.key')).toMatchObject([{ position: 3, length: 4 }]);
    await host.close();
  });

  test('is told once a second by all hosts together, without the names of tenants', async () => {
    const [one, two] = [await startHost('h1'), await startHost('h2')];
    await add('acme', 's');
    await one.publishDemand();
    const told = await redis.get(fleet.demand);
    expect(told).toMatch(/"waiting":\{"docker~1\.key":1\}/);
    expect(told).not.toContain('acme');
    await add('acme', 's2');
    await two.publishDemand();
    expect(await redis.get(fleet.demand)).toBe(told);
    await redis.pexpire(fleet.demand, 4_000);
    await two.publishDemand();
    expect(await redis.get(fleet.demand)).toMatch(/"waiting":\{"docker~1\.key":2\}/);
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
        lockMsOf: () => 60_000,
        stalledIntervalMs: 1_000,
      },
      ...{ isWishedElsewhere, serves: async ({ session }) => (session === 'named' ? { image: 'alpine' } : true) },
    });
  /** Lets a session have come earlier. */
  const age = (session: string, ms: number, name = DOCKER) =>
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
    await redis.zadd(fleet.queues, 0, sessionsQueue(DOCKER, 'a'));
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
