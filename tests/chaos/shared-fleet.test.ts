import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Fleet, Result, Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { percentile } from '../bench/measure/spread.ts';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { jain, readHeldSlots, sampleHeldSlots, slotTimesOf } from '../support/slot-times.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Tenants that share two hosts with real containers, eight slots altogether.
//
// The times of the promise, in about ten minutes: SHELLFLEET_TEST_FAIR=long vitest run --project chaos
// tests/chaos/shared-fleet.test.ts

const LONG = process.env.SHELLFLEET_TEST_FAIR === 'long';
const SLOTS = 8;
const { slotMs, waiting, tries, mixedMs, longMs, within } = LONG
  ? { slotMs: 1_500, waiting: 10_000, tries: 20, mixedMs: 300_000, longMs: 60_000, within: 0.05 }
  : { slotMs: 300, waiting: 150, tries: 6, mixedMs: 5_000, longMs: 2_000, within: 0.15 };
/** Times of equal tenants. A short window has few turns of each, so one more or less of them weighs more. */
const equal = LONG
  ? { atOnce: 3, turnMs: slotMs, sampledMs: 180_000, windowMs: 60_000, stepMs: 5_000, leastJain: 0.98 }
  : { atOnce: 2, turnMs: 100, sampledMs: 6_500, windowMs: 6_000, stepMs: 250, leastJain: 0.8 };

const program = fileURLToPath(new URL('../fixtures/worker-with-own-memory.ts', import.meta.url));
const meminfo = join(tmpdir(), `sf-meminfo-${process.pid}`);
const vmstat = join(tmpdir(), `sf-vmstat-${process.pid}`);

let stack: TestFleet;
let inspect: FleetInspector;

beforeAll(async () => {
  ({ stack, inspect } = await startInspectedFleet({
    ...{ workers: 2, slots: SLOTS / 2, program },
    envs: [{ TEST_MEMINFO: meminfo, TEST_VMSTAT: vmstat }, {}],
  }));
});
afterAll(async () => {
  await endInspectedFleet(stack, inspect);
  await Promise.all([meminfo, vmstat].map((path) => rm(path, { force: true })));
});

const connectTenants = async (names: readonly string[]): Promise<Map<string, Fleet>> =>
  new Map(await Promise.all(names.map(async (tenant) => [tenant, await stack.connect({ tenant })] as const)));

/** Keeps one-shot commands of each tenant waiting, until stopped. `stop` returns the outcomes of all. */
function keepWaiting(fleets: ReadonlyMap<string, Fleet>, atOnce: number, script: (turn: number) => string) {
  const stopped = new AbortController();
  const results: Result[] = [];
  const line = async (fleet: Fleet) => {
    for (let turn = 0; !stopped.signal.aborted; turn += 1) results.push(await fleet.run(script(turn)));
  };
  const lines = [...fleets.values()].flatMap((fleet) => Array.from({ length: atOnce }, () => line(fleet)));
  return {
    async stop(): Promise<string[]> {
      stopped.abort();
      await Promise.all(lines);
      return [...new Set(results.map(({ outcome }) => outcome))];
    },
  };
}

const print = (figures: object) => process.stdout.write(`${JSON.stringify(figures)}\n`);

describe('a tenant that floods the fleet', () => {
  test('leaves a newcomer the next free slot, and the open sessions of others alone', async () => {
    const [flooding, newcomer] = [...(await connectTenants(['flooding', 'newcomer'])).values()] as [Fleet, Fleet];
    const steady = await stack.fleet.session('steady');
    await steady.run('n=0');
    const over = new AbortController();
    const held: number[] = [];
    const flood = Array.from({ length: waiting }, async () => {
      const { timings } = await flooding.run(`sleep ${slotMs / 1_000}`, { signal: over.signal });
      held.push(timings.startMs + timings.runMs);
    });
    const flooded = Promise.allSettled(flood);
    await until(
      () => readHeldSlots(inspect.redis, stack.keyspace),
      (slots) => slots.held.get('flooding') === SLOTS - 1 && held.length > 0,
      120_000,
    );
    const waits: number[] = [];
    for (let index = 0; index < tries; index += 1) {
      await delay((slotMs * ((index * 7) % tries)) / tries);
      const [{ outcome, timings }, counted] = await Promise.all([
        newcomer.run('true'),
        steady.run('n=$((n + 1)); echo $n'),
      ]);
      expect([outcome, counted.stdout]).toEqual(['success', `${index + 1}\n`]);
      waits.push(timings.queuedMs);
    }
    expect(held.length).toBeLessThan(waiting - SLOTS);
    over.abort();
    await flooded;
    await steady.close();
    const slotTime = percentile(held, 0.5);
    print({ waiting, tries, slotTime, waitP95: percentile(waits, 0.95), waitP50: percentile(waits, 0.5) });
    expect(percentile(waits, 0.95)).toBeLessThanOrEqual(1.5 * slotTime);
  }, 600_000);
});

describe('tenants that always have sessions waiting', () => {
  test('get slot time by weight while configurations are applied, and lose no command', async () => {
    const weights = { one: 1, two: 2, five: 5 };
    const tenants = Object.keys(weights);
    const apply = (more: object[] = []) =>
      stack.fleet.applyConfiguration({
        tenants: [...Object.entries(weights).map(([name, weight]) => ({ name, weight })), ...(more as [])],
      });
    await apply();
    const short = LONG ? 1 : 0.2;
    const load = keepWaiting(await connectTenants(tenants), SLOTS + 2, (turn) =>
      turn % 20 === 19 ? `sleep ${longMs / 1_000}` : `sleep ${short}`,
    );
    await until(
      () => readHeldSlots(inspect.redis, stack.keyspace),
      ({ held }) => tenants.every((tenant, index) => held.get(tenant) === Object.values(weights)[index]),
      60_000,
    );
    const sampled = sampleHeldSlots(inspect.redis, stack.keyspace, mixedMs);
    let revision = 0;
    for (let round = 0; round < 10; round += 1) {
      await delay(mixedMs / 20);
      revision = await apply([{ name: `other-${round}`, weight: round + 1 }]);
    }
    await until(
      () => stack.fleet.hosts(),
      (hosts) => hosts.every(({ configuration }) => configuration === revision),
    );
    const samples = await sampled;
    expect(await load.stop()).toEqual(['success']);
    const times = slotTimesOf(samples, tenants, 0, Number.POSITIVE_INFINITY);
    const total = times.reduce((a, b) => a + b, 0);
    const shares = times.map((time) => time / total);
    print({ seconds: mixedMs / 1_000, shares });
    for (const [index, wanted] of [1 / 8, 2 / 8, 5 / 8].entries())
      expect(Math.abs((shares[index] ?? 0) / wanted - 1)).toBeLessThan(within);
  }, 900_000);

  test('have equal slot time in each window, if 20 of them are equal', async () => {
    const { atOnce, turnMs, sampledMs, windowMs, stepMs, leastJain } = equal;
    const tenants = Array.from({ length: 20 }, (_, n) => `t${n}`);
    const load = keepWaiting(await connectTenants(tenants), atOnce, () => `sleep ${turnMs / 1_000}`);
    await until(
      () => readHeldSlots(inspect.redis, stack.keyspace),
      ({ held }) => tenants.reduce((sum, tenant) => sum + (held.get(tenant) ?? 0), 0) === SLOTS,
      60_000,
    );
    const samples = await sampleHeldSlots(inspect.redis, stack.keyspace, sampledMs);
    expect(await load.stop()).toEqual(['success']);
    const first = samples[0]?.at ?? 0;
    const windows = Array.from({ length: (sampledMs - windowMs) / stepMs }, (_, n) => first + stepMs * n);
    const indices = windows.map((from) => jain(slotTimesOf(samples, tenants, from, from + windowMs)));
    print({ jain: { least: Math.min(...indices), windows: indices.length } });
    expect(Math.min(...indices)).toBeGreaterThanOrEqual(leastJain);
  }, 400_000);
});

/** Opens two sessions on h1, which leave it room. They set a variable of their shells. */
async function openOnFirstHost(name: string): Promise<Session[]> {
  await stack.fleet.cordonHost('h2');
  const sessions = await Promise.all(Array.from({ length: 2 }, (_, n) => stack.fleet.session(`${name}-${n}`)));
  const results = await Promise.all(sessions.map((session) => session.run('n=1')));
  await stack.fleet.uncordonHost('h2');
  expect(results.map(({ hostId }) => hostId)).toEqual(['h1', 'h1']);
  return sessions;
}

describe('a host that takes nothing new under load', () => {
  test.each([
    ['cordoned', () => stack.fleet.cordonHost('h1'), () => stack.fleet.uncordonHost('h1')],
    ['drained', () => stack.fleet.drainHost('h1'), () => stack.fleet.drainHost('h1', { undo: true })],
  ])('keeps its shells when %s, and no command is lost', async (_how, stop, goOn) => {
    const staying = await openOnFirstHost('stays');
    const load = keepWaiting(new Map([['default', stack.fleet]]), 6, () => 'true');
    await stop();
    await until(
      async () => (await stack.fleet.hosts()).find(({ id }) => id === 'h1')?.sessions,
      (open) => open === staying.length,
    );
    const answers = await Promise.all(staying.map((session) => session.run('echo $n')));
    expect(answers.map(({ stdout, hostId }) => [stdout, hostId])).toEqual(staying.map(() => ['1\n', 'h1']));
    const elsewhere = await Promise.all(Array.from({ length: 4 }, () => stack.fleet.run('true')));
    expect(elsewhere.map(({ outcome, hostId }) => [outcome, hostId])).toEqual(Array(4).fill(['success', 'h2']));
    await goOn();
    await until(
      () => stack.fleet.run('true'),
      ({ hostId }) => hostId === 'h1',
    );
    expect(await load.stop()).toEqual(['success']);
    await Promise.all(staying.map((session) => session.close()));
  });
});

describe('a host whose memory runs short', () => {
  const setFree = (mib: number) => writeFile(meminfo, `MemTotal: 8388608 kB\nMemAvailable: ${mib * 1_024} kB\n`);
  const refusedBy = async (id: string) =>
    (await stack.fleet.hosts()).find((host) => host.id === id)?.gate?.reason ?? null;

  test('keeps its shells, leaves new sessions to others, and takes some again with room', async () => {
    await setFree(4_096);
    const kept = await openOnFirstHost('kept');
    await setFree(64);
    await until(
      () => refusedBy('h1'),
      (reason) => reason?.includes('SHELLFLEET_MIN_FREE_MEMORY') === true,
    );
    const load = keepWaiting(new Map([['default', stack.fleet]]), 6, () => 'true');
    const answers = await Promise.all(kept.map((session) => session.run('echo $n')));
    expect(answers.map(({ stdout, hostId }) => [stdout, hostId])).toEqual(kept.map(() => ['1\n', 'h1']));
    const elsewhere = await Promise.all(Array.from({ length: 4 }, () => stack.fleet.run('true')));
    expect(elsewhere.map(({ outcome, hostId }) => [outcome, hostId])).toEqual(Array(4).fill(['success', 'h2']));
    await setFree(4_096);
    await until(
      () => stack.fleet.run('true'),
      ({ hostId }) => hostId === 'h1',
    );
    expect(await load.stop()).toEqual(['success']);
    await Promise.all(kept.map((session) => session.close()));
  });

  test('says that the kernel killed processes for its memory, and keeps more free', async () => {
    const find = async () => (await stack.fleet.hosts()).find(({ id }) => id === 'h1');
    const setKills = (kills: number) => writeFile(vmstat, `nr_free_pages 1\noom_kill ${kills}\n`);
    await Promise.all([setFree(64), setKills(3)]);
    await until(find, (host) => host?.gate?.freeMemoryBytes === 64 * 2 ** 20);
    const before = (await find())?.gate?.leastMemoryBytes ?? 0;
    await setKills(4);
    await until(find, (host) => typeof host?.gate?.ranOutAt === 'string');
    await setFree(4_096);
    const host = await until(find, (found) => found?.gate?.reason?.includes('It takes no session until') === true);
    expect(host?.gate).toMatchObject({ leastMemoryBytes: 2 * before, sessionBytes: 32 * 2 ** 20 });
    expect(host?.warnings).toEqual([expect.stringContaining('It keeps 512 MiB free for now')]);
  });
});
