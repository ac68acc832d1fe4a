import { hostsFor, noHostReason, type QueuedSessions, readBeats, type SessionsLine } from '@shellfleet/placement';
import { type HostBeat, type HostInfo, mostSessionsOf } from '@shellfleet/protocol';
import { readFleetConfiguration, toQueueError } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';
import { listHosts } from '../hosts/list-hosts.ts';

/** Load of a fleet with all its tenants, as read at one time. */
export interface FleetLoad {
  /** When it was read; ISO 8601, by the clock of this process. */
  at: string;
  /** Hosts of the fleet, as `Fleet.hosts()` lists them. */
  hosts: HostInfo[];
  /** Tenants whose sessions hold a slot or wait for one; those with the most waiting sessions come first. */
  tenants: TenantLoad[];
  /** Numbers of sessions of all tenants. */
  sessions: SessionNumbers;
  /** Commands that ended on all hosts, per second, over the last 10 s. */
  commandsPerSecond: number;
  /** Why sessions wait; the most frequent reason comes first. */
  waiting: WaitReason[];
}

export interface TenantLoad {
  /** Name of the tenant. */
  tenant: string;
  /** Sessions that hold a slot. */
  held: number;
  /** Sessions that wait for a slot. */
  waiting: number;
}

export interface SessionNumbers {
  /** Sessions that hold a slot. */
  held: number;
  /** Sessions that run a command. */
  running: number;
  /** Sessions that wait for a slot. */
  waiting: number;
}

export interface WaitReason {
  /** The reason, in a sentence. */
  reason: string;
  /** Number of the sessions. */
  sessions: number;
}

interface LoadContext extends FleetContext {
  readonly sessions: Pick<QueuedSessions, 'lines'>;
}

/** Reads hosts, and the lines of waiting sessions. The cost does not depend on the number of sessions. */
export async function readFleetLoad(context: LoadContext): Promise<FleetLoad> {
  const { redis, fleet } = context;
  try {
    const [hosts, beats, lines, configured] = await Promise.all([
      listHosts(context),
      readBeats(redis, fleet),
      context.sessions.lines(),
      // A configuration that this version cannot use is reported by hosts and by `config show`.
      readFleetConfiguration(redis, fleet).catch(() => undefined),
    ]);
    const loads = sumByTenant(lines);
    const tenants = [...loads.values()].sort(byWaiting);
    const held = sum(tenants, (tenant) => tenant.held);
    const quotas = configured === undefined ? {} : mostSessionsOf(configured.configuration);
    return {
      at: new Date().toISOString(),
      hosts,
      tenants,
      sessions: { held, running: sum(hosts, ({ running }) => running), waiting: sum(tenants, (each) => each.waiting) },
      commandsPerSecond: sum(hosts, ({ commandsPerSecond }) => commandsPerSecond),
      waiting: toReasons({ lines, beats, loads, quotas: new Map(Object.entries(quotas)) }, hosts),
    };
  } catch (error) {
    throw toQueueError(error);
  }
}

/** Sums the sessions of each tenant that has any. Clients may note queues without sessions, in any name. */
export function sumByTenant(lines: readonly SessionsLine[]): Map<string, TenantLoad> {
  const loads = new Map<string, TenantLoad>();
  for (const { tenant, held, waiting } of lines) {
    if (held + waiting === 0) continue;
    const load = loads.get(tenant) ?? { tenant, held: 0, waiting: 0 };
    loads.set(tenant, { tenant, held: load.held + held, waiting: load.waiting + waiting });
  }
  return loads;
}

const byWaiting = (a: TenantLoad, b: TenantLoad) =>
  b.waiting - a.waiting || b.held - a.held || (a.tenant < b.tenant ? -1 : 1);

interface Waiting {
  lines: readonly SessionsLine[];
  beats: readonly HostBeat[];
  /** Sessions of each tenant. */
  loads: ReadonlyMap<string, TenantLoad>;
  /** Most sessions of the tenants that have a quota. */
  quotas: ReadonlyMap<string, number>;
}

/** Counts waiting sessions by reason. Sessions with a slot whose next command waits for an approval count as well. */
export function toReasons(waiting: Waiting, hosts: readonly Pick<HostInfo, 'held'>[]): WaitReason[] {
  const reasons = new Map<string, number>();
  const count = (reason: string, sessions: number) => {
    if (sessions > 0) reasons.set(reason, (reasons.get(reason) ?? 0) + sessions);
  };
  for (const line of waiting.lines) if (line.waiting > 0) count(reasonOf(line, waiting), line.waiting);
  count(
    'Their next command waits for an approval.',
    sum(hosts, ({ held = 0 }) => held),
  );
  return [...reasons]
    .map(([reason, sessions]) => ({ reason, sessions }))
    .sort((a, b) => b.sessions - a.sessions || (a.reason < b.reason ? -1 : 1));
}

function reasonOf({ placementClass, tenant }: SessionsLine, { beats, loads, quotas }: Waiting): string {
  const noHost = noHostReason(placementClass, beats);
  if (noHost !== undefined) return noHost;
  const held = loads.get(tenant)?.held ?? 0;
  if (held >= (quotas.get(tenant) ?? Number.POSITIVE_INFINITY))
    return 'Their tenant has as many sessions with a slot as its maxSessions allows.';
  const free = hostsFor(placementClass, beats).filter((host) => host.free > 0);
  if (free.length === 0) return 'All slots are taken.';
  const isKept = (host: HostBeat) => host.free <= host.slots / 8;
  if (held > 0 && free.every(isKept)) return 'The last eighth of the slots is for tenants that hold less of them.';
  // A gate without a shortage is closed while others are being opened.
  const [closed] = free.flatMap(({ gate }) => gate?.reason ?? []);
  return free.every(({ gate }) => gate?.reason) && closed !== undefined ? closed : 'No host has taken them yet.';
}

const sum = <T>(items: readonly T[], of: (item: T) => number) => items.reduce((total, item) => total + of(item), 0);
