import { setTimeout as delay } from 'node:timers/promises';
import { Fleet, type Session } from '@shellfleet/client';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { startOwnCluster } from '../support/own-cluster.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { readRedisUsage, usageDuring } from '../support/redis-usage.ts';

// What a fleet costs Redis, by its size. Redis, queues, mailboxes, clients and workers are real; the shells are in
// memory. Each size is `<hosts>x<tenants>x<open sessions>`.
//
// The figures of docs/scale.md: SHELLFLEET_TEST_SCALE='100x100x100 100x100x1000 100x100x10000' vitest run --project
// integration tests/integration/scale.test.ts; with SHELLFLEET_TEST_MASTERS=3 on a Redis Cluster

const LONG = process.env.SHELLFLEET_TEST_SCALE;
const MASTERS = Number(process.env.SHELLFLEET_TEST_MASTERS ?? 1);
const SIZES = (LONG ?? '4x8x40').split(' ').map((text) => text.split('x').map(Number));
/** Number of the open sessions in which commands run: the same in each size. */
const BUSY = Math.min(...SIZES.map(([, , sessions = 0]) => sessions));
/**
 * Windows of measurement, without and with commands in turn. Upkeep, which is in both, has a round every 2 s, so short
 * windows do not tell what a command costs.
 */
const { settleMs, windowMs, rounds, commandsPerSecond, admissions } = LONG
  ? { settleMs: 20_000, windowMs: 12_000, rounds: 4, commandsPerSecond: 400, admissions: 2_000 }
  : { settleMs: 0, windowMs: 500, rounds: 1, commandsPerSecond: 200, admissions: 100 };
/** Sessions that are opened at a time. */
const AT_A_TIME = 100;

interface Figures {
  hosts: number;
  tenants: number;
  sessions: number;
  connections: number;
  memoryPerSession: number;
  /** Processor time of each node of Redis (ms) and commands to all in a second without commands in sessions. */
  idle: { cpuMs: number[]; calls: number };
  /** Processor time of each node of Redis (µs) and commands to all for one command in an open session. */
  command: { cpuUs: number[]; calls: number };
  /** The same for a session that is opened, runs a command and is closed. */
  admission: { cpuUs: number[]; calls: number; perSecond: number };
}

/** Calls `act` for each number below `count`, at most `atATime` of them at once. */
async function forEachOf(count: number, atATime: number, act: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const line = async () => {
    while (next < count) await act(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atATime, count) }, line));
}

/** Starts a Redis, or a Cluster of several. */
async function startServers(): Promise<AsyncDisposable & { url: string; nodes: Redis[] }> {
  if (MASTERS === 1) {
    const own = await startOwnRedis();
    return { url: own.url, nodes: [own.redis], [Symbol.asyncDispose]: () => own[Symbol.asyncDispose]() };
  }
  const own = await startOwnCluster(MASTERS);
  const nodes = own.nodes.map(({ redis }) => redis);
  return { url: own.url, nodes, [Symbol.asyncDispose]: () => own[Symbol.asyncDispose]() };
}

type Usage = Awaited<ReturnType<typeof usageDuring>>;

const newUsage = (nodes: number): Usage => ({ cpuMs: Array(nodes).fill(0), calls: 0, tookMs: 0 });

function addTo(sum: Usage, { cpuMs, calls, tookMs }: Usage): void {
  sum.cpuMs = cpuMs.map((ms, node) => ms + (sum.cpuMs[node] ?? 0));
  sum.calls += calls;
  sum.tookMs += tookMs;
}

async function measure(hosts: number, tenants: number, sessions: number): Promise<Figures> {
  await using own = await startServers();
  const of = newFleet();
  const slots = Math.ceil((1.5 * sessions) / hosts) + AT_A_TIME;
  const workers: FakeShellWorker[] = [];
  const fleets: Fleet[] = [];
  try {
    await forEachOf(hosts, 10, async (index) => {
      workers.push(await startFakeShellWorker({ redisUrl: own.url, ...of, id: `h${index}`, slots }));
    });
    await forEachOf(tenants, 10, async (index) => {
      const tenant = `t${index}`;
      fleets.push(await Fleet.connect({ redisUrl: own.url, namespace: of.namespace, sealKeys: [of.sealKey], tenant }));
    });
    // What Redis keeps for a tenant, not for a session, and what clients do once.
    await forEachOf(tenants, 10, async (index) => (fleets[index] as Fleet).run('true'));
    const before = await readRedisUsage(own.nodes);
    const opened: Session[] = [];
    await forEachOf(sessions, AT_A_TIME, async (index) => {
      const session = await (fleets[index % tenants] as Fleet).session(`open-${index}`);
      await session.run('true');
      opened.push(session);
    });
    const after = await readRedisUsage(own.nodes);
    // Upkeep looks once more at what the sessions have just done.
    await delay(settleMs);
    const [idle, running] = [newUsage(own.nodes.length), newUsage(own.nodes.length)];
    const commands = (commandsPerSecond * windowMs) / 1_000;
    for (let round = 0; round < rounds; round += 1) {
      addTo(idle, await usageDuring(own.nodes, () => delay(windowMs)));
      addTo(
        running,
        await usageDuring(own.nodes, async () => {
          const from = performance.now();
          const results: Promise<unknown>[] = [];
          for (let index = 0; index < commands; index += 1) {
            await delay(Math.max(0, from + (1_000 * index) / commandsPerSecond - performance.now()));
            results.push((opened[index % BUSY] as Session).run('true'));
          }
          await Promise.all(results);
        }),
      );
    }
    const idleCalls = idle.calls / idle.tookMs;
    const idleCpu = idle.cpuMs.map((ms) => ms / idle.tookMs);
    const admitting = await usageDuring(own.nodes, () =>
      forEachOf(admissions, AT_A_TIME, (index) => (fleets[index % tenants] as Fleet).run('true')),
    );
    const costOf = ({ cpuMs, calls, tookMs }: Usage, count: number) => ({
      cpuUs: cpuMs.map((ms, node) => (1_000 * (ms - (idleCpu[node] ?? 0) * tookMs)) / count),
      calls: (calls - idleCalls * tookMs) / count,
    });
    return {
      ...{ hosts, tenants, sessions, connections: after.connections },
      memoryPerSession: (after.memoryBytes - before.memoryBytes) / sessions,
      idle: { cpuMs: idleCpu.map((share) => 1_000 * share), calls: 1_000 * idleCalls },
      command: costOf(running, rounds * commands),
      admission: { ...costOf(admitting, admissions), perSecond: (1_000 * admissions) / admitting.tookMs },
    };
  } finally {
    await Promise.allSettled(fleets.map((fleet) => fleet.close()));
    await Promise.allSettled(workers.map(({ worker }) => worker.close('end', 1_000)));
  }
}

const print = (figures: Figures) =>
  process.stdout.write(
    `${JSON.stringify(figures, (_key, value) => (typeof value === 'number' ? Math.round(value * 10) / 10 : value))}\n`,
  );

describe('the cost of a fleet for Redis', () => {
  test('is the same for each session, command and admission, however many sessions are open', async () => {
    const all: Figures[] = [];
    for (const [hosts = 1, tenants = 1, sessions = 1] of SIZES) {
      const figures = await measure(hosts, tenants, sessions);
      print(figures);
      all.push(figures);
      // Two of each host, two of all clients, and that of this test, on each node.
      expect(figures.connections).toBeLessThanOrEqual(MASTERS * (2 * hosts + 3));
    }
    if (LONG === undefined) return;
    const [smallest, largest] = [all[0] as Figures, all.at(-1) as Figures];
    const sum = (parts: readonly number[]) => parts.reduce((a, b) => a + b, 0);
    const ratios = {
      memory: largest.memoryPerSession / smallest.memoryPerSession,
      command: sum(largest.command.cpuUs) / sum(smallest.command.cpuUs),
      admission: sum(largest.admission.cpuUs) / sum(smallest.admission.cpuUs),
    };
    for (const [what, ratio] of Object.entries(ratios))
      expect.soft({ what, isFlat: Math.abs(ratio - 1) <= 0.2 }).toEqual({ what, isFlat: true });
  }, 1_800_000);
});
