import type { SessionJob } from '@shellfleet/placement';
import { describe, expect, test } from 'vitest';
import { add, addMany, fetchNames, fleet, redis, startHost, usePlacement } from '../support/open-placement.ts';
import { jain } from '../support/slot-times.ts';

// Which tenant gets the next free slot. The choice and the queues are real; only the time for which sessions hold their
// slots is simulated.

usePlacement();

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
