import { type FleetKeys, hostKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { readDemand, type TenantDemand } from './demand.ts';
import { namesOfGreatest, OTHERS } from './greatest-names.ts';
import { readLiveHosts } from './live-hosts.ts';
import { parseClass } from './placement.ts';

/** Classes that are listed, since clients name them. */
const MOST_CLASSES = 100;

/** What the sessions of a whole fleet hold and wait for. The path `/scale` returns it. */
export interface FleetDemand {
  /** When it was read; ISO 8601. */
  at: string;
  /** `held` and `waiting` together. */
  demand: number;
  /** Sessions of all tenants that hold a slot. */
  held: number;
  /** Sessions of all tenants that wait for a slot. */
  waiting: number;
  /** How many of these wait for their tenant's quota, so that further hosts would not help them. */
  overQuota: number;
  /** `waiting` by class, without schema and seal key; of the 100 classes in which most wait. */
  waitingByClass: Record<string, number>;
  /** Slots of the hosts that do not drain. */
  slots: number;
  /** How many of these slots are free. */
  free: number;
  /** Numbers of hosts by what they do. */
  hosts: HostCounts;
}

/** Numbers of hosts by what they do. */
export interface HostCounts {
  /** Hosts that take sessions. */
  up: number;
  /** Hosts that take no session, since they drain. */
  draining: number;
  /** Hosts without a heartbeat that have not left the fleet. */
  unreachable: number;
}

/** The demand of a fleet, and that of each tenant. */
export interface ReadDemand {
  fleet: FleetDemand;
  /** Waiting sessions of each tenant, whose name is hashed. */
  tenants: readonly TenantDemand[];
}

/**
 * Reads the demand of a fleet. Returns undefined while no host has counted what waits, as just after an outage: nothing
 * must scale down then. The cost does not depend on the number of sessions.
 */
export async function readFleetDemand(redis: Redis, keys: FleetKeys): Promise<ReadDemand | undefined> {
  const [tenants, beats, hosts] = await Promise.all([
    readDemand(redis, keys),
    readLiveHosts(redis, keys),
    redis.zrange(keys.hosts, '0', '-1'),
  ]);
  if (tenants === undefined) return undefined;
  const silent = hosts.filter((id) => !beats.has(id));
  const left = await Promise.all(silent.map((id) => redis.exists(hostKeys(keys.namespace, id).left)));
  const live = [...beats.values()];
  const open = live.filter(({ draining }) => !draining);
  const byClass = new Map<string, number>();
  for (const { name, count } of tenants.flatMap(countsOf)) byClass.set(name, (byClass.get(name) ?? 0) + count);
  const listed = namesOfGreatest(byClass, MOST_CLASSES);
  const held = sum(live, ({ sessions }) => sessions);
  const waiting = sum([...byClass.values()], (count) => count);
  const fleet: FleetDemand = {
    at: new Date().toISOString(),
    ...{ demand: held + waiting, held, waiting },
    overQuota: sum(tenants, (tenant) => Math.max(0, waitingOf(tenant) - (tenant.room ?? Number.POSITIVE_INFINITY))),
    waitingByClass: Object.fromEntries([...byClass].filter(([name]) => listed.has(name))),
    slots: sum(open, ({ slots }) => slots),
    free: sum(open, ({ free }) => free),
    hosts: {
      up: open.length,
      draining: live.length - open.length,
      unreachable: sum(left, (hasLeft) => (hasLeft === 1 ? 0 : 1)),
    },
  };
  return { fleet, tenants };
}

/** Returns how many sessions of a tenant wait in each class, with the names of `toClassName`. */
export function countsOf({ waiting }: TenantDemand): { name: string; count: number }[] {
  return Object.entries(waiting).map(([name, count]) => ({ name: toClassName(name), count }));
}

/** Returns a class without schema and seal key. Clients name queues, so there are classes that no host knows. */
export const toClassName = (name: string): string =>
  parseClass(name) === undefined ? OTHERS : name.replace(/~[^~]*$/, '');

const waitingOf = (tenant: TenantDemand) => sum(countsOf(tenant), ({ count }) => count);
const sum = <T>(items: readonly T[], of: (item: T) => number) => items.reduce((total, item) => total + of(item), 0);
