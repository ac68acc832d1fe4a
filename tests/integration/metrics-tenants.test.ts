import { Fleet, type Session } from '@shellfleet/client';
import { newSessionJob, QueuedSessions } from '@shellfleet/placement';
import { fleetKeys, sessionKeys } from '@shellfleet/protocol';
import { writeTenantUses } from '@shellfleet/redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { putIntoIndex } from '../support/put-into-index.ts';
import { freePort } from '../support/redis-process.ts';
import { until } from '../support/until.ts';

// A worker with shells in memory in a fleet of 1,000 tenants.

const TENANTS = 1_000;
const MOST_SERIES = 2_000;
const SLOTS = 2;
const TOKEN = 'token-of-the-autoscaler';
const of = newFleet();
let own: OwnRedis;
let port: number;
let host: FakeShellWorker;
let fleet: Fleet;
let sessions: Session[];
beforeAll(async () => {
  own = await startOwnRedis();
  port = await freePort();
  const uses = new Map(tenants().map((tenant, n) => [tenant, { processorMs: n, outputBytes: n, diskBytes: 0 }]));
  await writeTenantUses(own.redis, of.keyspace, 'h1', uses);
  const env = { SHELLFLEET_METRICS_PORT: String(port), SHELLFLEET_SCALE_TOKEN: TOKEN };
  host = await startFakeShellWorker({ redisUrl: own.url, ...of, id: 'h1', slots: SLOTS, env });
  fleet = await Fleet.connect({ redisUrl: own.url, namespace: of.namespace, sealKeys: [of.sealKey] });
  // Two sessions hold all slots, so no other is ever taken.
  sessions = await Promise.all(Array.from({ length: SLOTS }, (_, n) => fleet.session(`holds-${n}`)));
  await Promise.all(sessions.map((session) => session.run('true')));
  await addWaiting();
}, 60_000);
afterAll(async () => {
  await fleet?.close();
  await host?.worker.close('end', 1_000);
  await own?.[Symbol.asyncDispose]();
});

function tenants(): string[] {
  return Array.from({ length: TENANTS }, (_, n) => `tenant-${String(n).padStart(3, '0')}`);
}

/** Adds a waiting session of each tenant, and more of `tenant-007`. */
async function addWaiting(): Promise<void> {
  const queued = new QueuedSessions(own.redis, fleetKeys(of.keyspace), { enter: (call) => call() });
  const placement = { policy: 'docker', priority: 0, labels: {}, sealedWith: '' } as const;
  const add = async (tenant: string, session: string) => {
    await putIntoIndex(own.redis, sessionKeys(of.keyspace, tenant, session), Number.MAX_SAFE_INTEGER);
    await queued.ensureJob(newSessionJob({ tenant, session }, 'g', placement));
  };
  await Promise.all(tenants().map((tenant) => add(tenant, 'waits')));
  await Promise.all(Array.from({ length: 4 }, (_, n) => add('tenant-007', `waits-${n}`)));
}

const read = async (path: string, headers = {}) => (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).text();
const series = async () => (await read('/metrics')).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
const scale = async () => JSON.parse(await read('/scale', { authorization: `Bearer ${TOKEN}` }));

describe('the metrics of a worker in a fleet of 1,000 tenants', () => {
  test('are at most 2,000 series, with the tenants that use most by name', async () => {
    const all = await until(series, (lines) => lines.some((line) => /waiting_sessions.*tenant-007.* 5$/.test(line)));
    expect(all.length).toBeLessThan(MOST_SERIES);
    const waiting = all.filter((line) => line.startsWith('shellfleet_waiting_sessions'));
    expect(waiting).toHaveLength(21);
    expect(waiting).toContain('shellfleet_waiting_sessions{class="docker",tenant="tenant-007"} 5');
    expect(waiting).toContain(`shellfleet_waiting_sessions{class="docker",tenant="(others)"} ${TENANTS - 20}`);
    expect(all).toContain(`shellfleet_held_sessions{class="docker",tenant="default"} ${SLOTS}`);
    expect(all.filter((line) => line.startsWith('shellfleet_tenant_processor_seconds_total'))).toHaveLength(21);
    expect(all).toContain('shellfleet_tenant_processor_seconds_total{tenant="tenant-999"} 0');
  });

  test('show what the fleet demands, and calls to Redis by script', async () => {
    const all = await series();
    expect(all).toContain(`shellfleet_demand_sessions ${TENANTS + 4 + SLOTS}`);
    expect(all).toContainEqual(expect.stringMatching(/^shellfleet_redis_calls_total\{call="host\/finish"\} [1-9]/));
    expect(all).toContain('shellfleet_redis_up 1');
  });
});

describe('/scale', () => {
  test('tells what the whole fleet holds and waits for', async () => {
    expect(await scale()).toEqual({
      at: expect.stringMatching(/^\d{4}-.*Z$/),
      ...{ demand: TENANTS + 4 + SLOTS, held: SLOTS, waiting: TENANTS + 4, overQuota: 0 },
      waitingByClass: { docker: TENANTS + 4 },
      ...{ slots: SLOTS, free: 0, hosts: { up: 1, draining: 0, unreachable: 0 } },
    });
  });

  test('tells how many wait only for the quota of their tenant', async () => {
    await fleet.applyConfiguration({ tenants: [{ name: 'tenant-007', maxSessions: 1 }] });
    expect(await until(scale, ({ overQuota }) => overQuota === 4)).toMatchObject({ waiting: TENANTS + 4 });
  });
});

describe('without Redis', () => {
  test('a worker still shows its own metrics, and says why it is not ready', async () => {
    own.freeze();
    const all = await until(series, (lines) => lines.includes('shellfleet_redis_up 0'));
    expect(all).toContain(`shellfleet_slots ${SLOTS}`);
    expect(all.filter((line) => /^shellfleet_(?:waiting|demand)_sessions/.test(line))).toEqual([]);
    expect(
      await until(
        () => read('/readyz'),
        (text) => text !== 'ready\n',
      ),
    ).toMatch(/^Redis has stored no heartbeat of it for \d+ s\.\n$/);
    own.thaw();
    await until(
      () => read('/readyz'),
      (text) => text === 'ready\n',
    );
  });
});
