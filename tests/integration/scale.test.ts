import { setTimeout as delay } from 'node:timers/promises';
import { Fleet, type Session } from '@shellfleet/client';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { type FakeShellProcesses, startFakeShellProcesses } from '../support/fake-shell-processes.ts';
import { newFleet } from '../support/fake-shell-workers.ts';
import { startOwnCluster } from '../support/own-cluster.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { readRedisUsage, usageDuring } from '../support/redis-usage.ts';

// What a fleet costs Redis, by the number of its open sessions. Redis, queues, mailboxes, clients and workers are real;
// the shells are in memory. SHELLFLEET_TEST_SCALE is `<hosts>x<tenants>:<open sessions>,<more of them>…`.
//
// The figures of docs/scale.md: SHELLFLEET_TEST_SCALE=100x100:100,1000,10000 vitest run --project integration
// tests/integration/scale.test.ts; with SHELLFLEET_TEST_MASTERS=3 on a Redis Cluster

const LONG = process.env.SHELLFLEET_TEST_SCALE;
const MASTERS = Number(process.env.SHELLFLEET_TEST_MASTERS ?? 1);
const [FLEET = '', COUNTS = ''] = (LONG ?? '4x8:20,200').split(':');
const [HOSTS = 1, TENANTS = 1] = FLEET.split('x').map(Number);
const SIZES = COUNTS.split(',').map(Number);
/** Number of the open sessions in which commands run: the same in each size. */
const BUSY = Math.min(...SIZES);
/**
 * Windows of measurement, without and with commands in turn. Upkeep, which is in both, has a round every 2 s. Commands
 * are so few that neither Redis nor a process with workers is busy all the time: what a busy one does together would
 * cost less.
 */
const { processes, settleMs, windowMs, rounds, commandsPerSecond, admissions, admittedAtATime } = LONG
  ? {
      ...{ processes: 4, settleMs: 30_000, windowMs: 20_000, rounds: 3, commandsPerSecond: 100 },
      ...{ admissions: 1_000, admittedAtATime: 4 },
    }
  : {
      ...{ processes: 1, settleMs: 3_000, windowMs: 1_500, rounds: 1, commandsPerSecond: 200 },
      ...{ admissions: 100, admittedAtATime: 20 },
    };
/** Sessions that are opened at a time. */
const OPENED_AT_A_TIME = 50;

type Usage = Awaited<ReturnType<typeof usageDuring>>;

interface Figures {
  hosts: number;
  tenants: number;
  sessions: number;
  connections: number;
  /** Memory of Redis (bytes) for each session that this size has more than the one before. */
  memoryPerSession: number;
  /** Processor time of each node of Redis (ms) and commands to all in a second without commands in sessions. */
  idle: { cpuMs: number[]; calls: number };
  /** Processor time of each node of Redis (µs) and commands to all for one command in an open session. */
  command: { cpuUs: number[]; calls: number };
  /** The same for a session that is opened, runs a command and is closed. */
  admission: { cpuUs: number[]; calls: number; perSecond: number };
  /** Share of time for which Redis, and the busiest process with workers or clients, did something. */
  busy: { redis: number; process: number };
}

/** Calls `act` for each number from `from` to below `to`, at most `atATime` of them at once. */
async function forEachOf(
  [from, to]: readonly [number, number],
  atATime: number,
  act: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = from;
  const line = async () => {
    while (next < to) await act(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atATime, to - from) }, line));
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

const newUsage = (nodes: number): Usage => ({ cpuMs: Array(nodes).fill(0), calls: 0, tookMs: 0 });

function addTo(sum: Usage, { cpuMs, calls, tookMs }: Usage): void {
  sum.cpuMs = cpuMs.map((ms, node) => ms + (sum.cpuMs[node] ?? 0));
  sum.calls += calls;
  sum.tookMs += tookMs;
}

/** Runs commands in the sessions at an even rate. */
async function runCommands(count: number, sessions: readonly Session[]): Promise<void> {
  const from = performance.now();
  const results: Promise<unknown>[] = [];
  for (let index = 0; index < count; index += 1) {
    await delay(Math.max(0, from + (1_000 * index) / commandsPerSecond - performance.now()));
    results.push((sessions[index % sessions.length] as Session).run('true'));
  }
  await Promise.all(results);
}

/** A fleet whose sessions become more from size to size. */
interface Measured {
  nodes: Redis[];
  workers: FakeShellProcesses;
  fleets: Fleet[];
  opened: Session[];
}

/** Opens sessions until there are as many, and measures what is done then. */
async function measure({ nodes, workers, fleets, opened }: Measured, sessions: number): Promise<Figures> {
  const fleetOf = (index: number) => fleets[index % fleets.length] as Fleet;
  const readBusy = async () => [...(await workers.utilization()), performance.eventLoopUtilization()];
  const before = await readRedisUsage(nodes);
  const added = sessions - opened.length;
  await forEachOf([opened.length, sessions], OPENED_AT_A_TIME, async (index) => {
    const session = await fleetOf(index).session(`open-${index}`);
    opened[index] = session;
    await session.run('true');
  });
  // Upkeep looks once more at what the sessions have just done, and frees the memory that their streams reserve.
  await delay(settleMs);
  const after = await readRedisUsage(nodes);
  const [idle, running] = [newUsage(nodes.length), newUsage(nodes.length)];
  const commands = (commandsPerSecond * windowMs) / 1_000;
  const busyBefore = await readBusy();
  for (let round = 0; round < rounds; round += 1) {
    addTo(idle, await usageDuring(nodes, () => delay(windowMs)));
    addTo(running, await usageDuring(nodes, () => runCommands(commands, opened.slice(0, BUSY))));
  }
  const busyAfter = await readBusy();
  const busy = busyAfter.map((one, index) => performance.eventLoopUtilization(one, busyBefore[index]).utilization);
  const idleCalls = idle.calls / idle.tookMs;
  const idleCpu = idle.cpuMs.map((ms) => ms / idle.tookMs);
  const admitting = await usageDuring(nodes, () =>
    forEachOf([0, admissions], admittedAtATime, (index) => fleetOf(index).run('true')),
  );
  const costOf = ({ cpuMs, calls, tookMs }: Usage, count: number) => ({
    cpuUs: cpuMs.map((ms, node) => (1_000 * (ms - (idleCpu[node] ?? 0) * tookMs)) / count),
    calls: (calls - idleCalls * tookMs) / count,
  });
  return {
    ...{ hosts: HOSTS, tenants: TENANTS, sessions, connections: after.connections },
    memoryPerSession: (after.memoryBytes - before.memoryBytes) / added,
    idle: { cpuMs: idleCpu.map((share) => 1_000 * share), calls: 1_000 * idleCalls },
    command: costOf(running, rounds * commands),
    admission: { ...costOf(admitting, admissions), perSecond: (1_000 * admissions) / admitting.tookMs },
    busy: { redis: Math.max(...running.cpuMs) / running.tookMs, process: Math.max(...busy) },
  };
}

const toRounded = (_key: string, value: unknown) => (typeof value === 'number' ? Math.round(value * 100) / 100 : value);

/** Starts a fleet, and measures it with each number of open sessions. */
async function measureSizes(): Promise<Figures[]> {
  await using own = await startServers();
  const { nodes, url: redisUrl } = own;
  const { namespace, sealKey } = newFleet();
  const ids = Array.from({ length: HOSTS }, (_, index) => `h${index}`);
  const slots = Math.ceil((1.5 * Math.max(...SIZES)) / HOSTS) + OPENED_AT_A_TIME;
  await using workers = await startFakeShellProcesses(processes, { redisUrl, namespace, sealKey, ids, slots });
  const fleets: Fleet[] = [];
  try {
    await forEachOf([0, TENANTS], 10, async (index) => {
      fleets[index] = await Fleet.connect({ redisUrl, namespace, sealKeys: [sealKey], tenant: `t${index}` });
      // What Redis keeps for a tenant, not for a session, and what clients do once.
      await fleets[index]?.run('true');
    });
    const all: Figures[] = [];
    const opened: Session[] = [];
    for (const sessions of SIZES) {
      const figures = await measure({ nodes, workers, fleets, opened }, sessions);
      process.stdout.write(`${JSON.stringify(figures, toRounded)}\n`);
      all.push(figures);
    }
    return all;
  } finally {
    await Promise.allSettled(fleets.map((fleet) => fleet.close()));
  }
}

const sum = (parts: readonly number[]) => parts.reduce((a, b) => a + b, 0);

/** What must be equal in each size. A short run tells the numbers of commands, but neither times nor memory. */
const FLAT: Record<string, (figures: Figures) => number> = {
  connections: ({ connections }) => connections,
  'calls of a command': ({ command }) => command.calls,
  'calls of an admission': ({ admission }) => admission.calls,
  ...(LONG && {
    memory: ({ memoryPerSession }) => memoryPerSession,
    'processor time of a command': ({ command }) => sum(command.cpuUs),
    'processor time of an admission': ({ admission }) => sum(admission.cpuUs),
    'admissions a second': ({ admission }) => admission.perSecond,
  }),
};

describe('the cost of a fleet for Redis', () => {
  test('is the same for each session, command and admission, however many sessions are open', async () => {
    expect(new Set(SIZES).size, 'sizes to compare').toBeGreaterThan(1);
    const all = await measureSizes();
    const [smallest, largest] = [all[0], all.at(-1)] as [Figures, Figures];
    // Two of each host, two of all clients, and that of this test, on each node.
    expect(largest.connections).toBeLessThanOrEqual(MASTERS * (2 * HOSTS + 3));
    for (const [what, read] of Object.entries(FLAT)) {
      const ratio = read(largest) / read(smallest);
      expect.soft(ratio, what).toBeGreaterThan(0.8);
      expect.soft(ratio, what).toBeLessThan(1.2);
    }
  }, 1_800_000);
});
