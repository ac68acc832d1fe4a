import {
  countsOf,
  hashTenant,
  listTenants,
  namesOfGreatest,
  OTHERS,
  type ReadDemand,
  readFleetDemand,
  toClassName,
} from '@shellfleet/placement';
import type { TenantUse } from '@shellfleet/protocol';
import type { LabelsOf, MetricsRegistry } from '../metrics/metrics-registry.ts';
import { type ClassCount, MOST_NAMED, orOthers, sumByNamed } from '../metrics/named-series.ts';
import { TenantGrowth } from '../metrics/tenant-growth.ts';
import type { WorkerMetrics } from '../metrics/worker-metrics.ts';
import type { OpenWorker } from './open-worker.ts';

// Metrics that are read when somebody asks for them.
//
// MEASURE-1. A scrape costs Redis a fixed number of calls, whatever the number of sessions and tenants, and one for
//     each host. The names of tenants are listed again only when one is not known.
// MEASURE-2. Without Redis, the metrics of the fleet have no values, and all others do.

type Uses = ReadonlyMap<string, TenantUse>;
const COUNTED = {
  shellfleet_tenant_processor_seconds_total: ({ processorMs }: TenantUse) => processorMs / 1_000,
  shellfleet_tenant_output_bytes_total: ({ outputBytes }: TenantUse) => outputBytes,
};
type CountedUse = keyof typeof COUNTED;
type SessionCounts = 'shellfleet_held_sessions' | 'shellfleet_waiting_sessions';

export class WorkerGauges {
  readonly #worker: OpenWorker;
  readonly #metrics: WorkerMetrics;
  readonly #registry: MetricsRegistry;
  readonly #isReady: () => boolean;
  readonly #growth: ReadonlyMap<CountedUse, TenantGrowth>;
  /** Tenants that had series of their own in the last scrape. */
  #named: ReadonlySet<string> = new Set();
  /** Names of tenants, by hash. */
  #tenants: ReadonlyMap<string, string> = new Map();

  constructor(worker: OpenWorker, metrics: WorkerMetrics, isReady: () => boolean) {
    const { registry } = metrics;
    this.#worker = worker;
    this.#metrics = metrics;
    this.#registry = registry;
    this.#isReady = isReady;
    const uses = worker.host.uses.read();
    const names = Object.keys(COUNTED) as CountedUse[];
    this.#growth = new Map(names.map((name) => [name, new TenantGrowth(totalsOf(uses, name))]));
    const { hostId, version } = worker.host;
    registry.replace('shellfleet_worker_info', [[{ host: hostId, version }, 1]]);
  }

  /** Sets all metrics that are not counted when something happens. Never rejects. */
  async measure(): Promise<void> {
    this.#measureProcess();
    this.#measureSessions();
    this.#measurePools();
    this.#measureRoom();
    this.#measureSinks();
    this.#measureUses(this.#worker.host.uses.read());
    await this.#measureFleet();
    this.#metrics.addCounts();
  }

  #measureProcess(): void {
    const registry = this.#registry;
    const { user, system } = process.cpuUsage();
    registry.countTo('shellfleet_worker_cpu_seconds_total', {}, (user + system) / 1e6);
    registry.countTo('shellfleet_worker_busy_seconds_total', {}, performance.eventLoopUtilization().active / 1_000);
    registry.set('shellfleet_worker_resident_bytes', process.memoryUsage.rss());
    registry.set('shellfleet_ready', this.#isReady() ? 1 : 0);
  }

  #measureSessions(): void {
    const registry = this.#registry;
    const { host, sessions, heartbeat } = this.#worker;
    const { slots } = host.settings;
    registry.set('shellfleet_slots', slots);
    registry.set('shellfleet_slots_free', Math.max(0, slots - sessions.size));
    registry.set('shellfleet_commands_running', host.hostEntries.count);
    registry.set('shellfleet_sessions_asking', sessions.asking);
    const held = sessions.jobs.map(({ tenant, placementClass }) => ({
      ...{ class: toClassName(placementClass), tenant, count: 1 },
    }));
    registry.replace('shellfleet_held_sessions', toValues(held));
    registry.set('shellfleet_leases', host.leases.size);
    registry.countTo('shellfleet_leases_lost_total', {}, host.leases.lost);
    const ageMs = heartbeat.lastAt === 0 ? null : Math.max(0, Date.now() - heartbeat.lastAt);
    registry.set('shellfleet_heartbeat_age_seconds', ageMs === null ? null : ageMs / 1_000);
  }

  #measurePools(): void {
    const registry = this.#registry;
    const ready = new Map<string, [LabelsOf<'shellfleet_pool_ready'>, number]>();
    const totals = new Map<string, { labels: LabelsOf<'shellfleet_pool_ready'>; asked: number; warm: number }>();
    // Two pools may have one image with different limits.
    for (const pool of this.#worker.pools.describe()) {
      const labels = { image: pool.image, network: pool.network };
      const key = JSON.stringify(labels);
      ready.set(key, [labels, (ready.get(key)?.[1] ?? 0) + pool.ready]);
      const total = totals.get(key) ?? { labels, asked: 0, warm: 0 };
      totals.set(key, { labels, asked: total.asked + pool.asked, warm: total.warm + pool.warm });
    }
    registry.replace('shellfleet_pool_ready', ready.values());
    for (const { labels, asked, warm } of totals.values()) {
      registry.countTo('shellfleet_pool_asked_total', labels, asked);
      registry.countTo('shellfleet_pool_warm_total', labels, warm);
    }
  }

  #measureRoom(): void {
    const registry = this.#registry;
    const room = this.#worker.gate.describe();
    registry.set('shellfleet_sessions_opening', room.opening);
    registry.set('shellfleet_memory_free_bytes', room.freeMemoryBytes);
    registry.set('shellfleet_memory_reserve_bytes', room.leastMemoryBytes);
    registry.set('shellfleet_disk_free_bytes', room.freeDiskBytes);
    const pressures = { memory: room.memoryPressure, io: room.ioPressure };
    const known = Object.entries(pressures).flatMap(([resource, percent]): [{ resource: string }, number][] =>
      percent === null ? [] : [[{ resource }, percent / 100]],
    );
    registry.replace('shellfleet_pressure_ratio', known);
  }

  #measureSinks(): void {
    const registry = this.#registry;
    const { sinks } = this.#worker.host;
    registry.replace(
      'shellfleet_sink_up',
      sinks.map(({ name, isUp }) => [{ sink: name }, isUp ? 1 : 0]),
    );
    registry.replace(
      'shellfleet_sink_waiting_lines',
      sinks.map(({ name, waiting }) => [{ sink: name }, waiting]),
    );
    for (const { name, dropped } of sinks)
      registry.countTo('shellfleet_sink_dropped_lines_total', { sink: name }, dropped);
  }

  #measureUses(uses: Uses): void {
    const processor = totalsOf(uses, 'shellfleet_tenant_processor_seconds_total');
    const named = namesOfGreatest(processor, MOST_NAMED.tenants);
    for (const [name, growth] of this.#growth) {
      const counter = this.#registry.counter(name);
      for (const tenant of this.#named) if (!named.has(tenant)) counter.remove({ tenant });
      for (const [tenant, grown] of growth.since(totalsOf(uses, name), named)) counter.inc({ tenant }, grown);
    }
    this.#named = named;
    const disks = new Map<string, number>();
    for (const [tenant, { diskBytes }] of uses) {
      const label = orOthers(tenant, named);
      disks.set(label, (disks.get(label) ?? 0) + diskBytes);
    }
    this.#registry.replace(
      'shellfleet_tenant_disk_bytes',
      [...disks].map(([tenant, bytes]) => [{ tenant }, bytes]),
    );
  }

  async #measureFleet(): Promise<void> {
    const registry = this.#registry;
    const { redis } = this.#worker.host;
    const from = performance.now();
    const found = await redis.ping().then(
      () => performance.now() - from,
      () => undefined,
    );
    registry.set('shellfleet_redis_up', found === undefined ? 0 : 1);
    registry.set('shellfleet_redis_reply_seconds', found === undefined ? null : found / 1_000);
    const read = found === undefined ? undefined : await this.#readFleet().catch(() => undefined);
    registry.replace('shellfleet_waiting_sessions', read === undefined ? [] : toValues(read.waiting));
    registry.set('shellfleet_demand_sessions', read?.fleet.demand ?? null);
    const hosts = Object.entries(read?.fleet.hosts ?? {});
    registry.replace(
      'shellfleet_hosts',
      hosts.map(([state, count]) => [{ state }, count]),
    );
  }

  /** Reads the demand of the fleet, with the names of the tenants that wait. Undefined if it is not known. */
  async #readFleet(): Promise<(ReadDemand & { waiting: ClassCount[] }) | undefined> {
    const { redis, fleet } = this.#worker.host;
    const read = await readFleetDemand(redis, fleet);
    if (read === undefined) return undefined;
    if (read.tenants.some(({ tenant }) => !this.#tenants.has(tenant)))
      this.#tenants = new Map((await listTenants(redis, fleet)).map((tenant) => [hashTenant(tenant), tenant]));
    const waiting = read.tenants.flatMap((demand) => {
      const tenant = this.#tenants.get(demand.tenant) ?? OTHERS;
      return countsOf(demand).map(({ name, count }) => ({ class: name, tenant, count }));
    });
    return { ...read, waiting };
  }
}

const totalsOf = (uses: Uses, name: CountedUse): Map<string, number> =>
  new Map([...uses].map(([tenant, use]) => [tenant, COUNTED[name](use)]));

const toValues = (counts: readonly ClassCount[]): [LabelsOf<SessionCounts>, number][] =>
  sumByNamed(counts).map(({ count, ...labels }) => [labels, count]);
