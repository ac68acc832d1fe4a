import type { QueuedSessions } from '@shellfleet/placement';
import { type TenantConfiguration, type TenantUse, tryJson } from '@shellfleet/protocol';
import { readFleetConfiguration, readTenantUses, toQueueError } from '@shellfleet/redis';
import { z } from 'zod';
import type { FleetContext } from '../connection/fleet-context.ts';
import { listHosts } from '../hosts/list-hosts.ts';
import { sumByTenant } from './fleet-load.ts';

/** What a tenant uses at present, and its part and quotas in the fleet's configuration. */
export interface TenantInfo extends TenantConfiguration {
  /** Sessions that hold a slot. */
  openSessions: number;
  /** Sessions that wait for a slot. */
  waitingSessions: number;
  /** Commands that wait, as a host counted them in the last seconds. Absent while no host is up. */
  waitingCommands?: number;
  /** Bytes that containers of open sessions have written to the disks of their hosts, as measured last. */
  diskBytes: number;
  /** Processor time in ms of all its sessions so far, on the hosts that are listed. */
  processorMs: number;
  /** Bytes of output of all its commands so far, on the hosts that are listed. */
  outputBytes: number;
}

interface TenantsContext extends FleetContext {
  readonly sessions: Pick<QueuedSessions, 'lines'>;
}

const waitingSchema = z.record(z.string(), z.number()).transform((counts) => new Map(Object.entries(counts)));

/**
 * Lists the tenants that are configured, have sessions or used anything on a listed host, by name. The cost does not
 * depend on the number of sessions.
 */
export async function readTenants(context: TenantsContext): Promise<TenantInfo[]> {
  const { redis, fleet } = context;
  try {
    const [applied, lines, uses, waitingText] = await Promise.all([
      readFleetConfiguration(redis, fleet),
      context.sessions.lines(),
      readUses(context),
      redis.get(fleet.waiting),
    ]);
    const waiting = waitingSchema.safeParse(tryJson(waitingText)).data;
    const configured = new Map(applied?.configuration.tenants.map((tenant) => [tenant.name, tenant]));
    const loads = sumByTenant(lines);
    const names = new Set([...configured.keys(), ...loads.keys(), ...uses.keys()]);
    return [...names].sort().map((name) => ({
      ...(configured.get(name) ?? { name, weight: 1 }),
      openSessions: loads.get(name)?.held ?? 0,
      waitingSessions: loads.get(name)?.waiting ?? 0,
      ...(waiting === undefined ? {} : { waitingCommands: waiting.get(name) ?? 0 }),
      ...(uses.get(name) ?? NOTHING),
    }));
  } catch (error) {
    throw toQueueError(error);
  }
}

const NOTHING: TenantUse = { processorMs: 0, outputBytes: 0, diskBytes: 0 };

/** Sums what each tenant uses on the listed hosts. */
export async function readUses(context: FleetContext): Promise<Map<string, TenantUse>> {
  const hosts = await listHosts(context);
  const ofHosts = await Promise.all(hosts.map(({ id }) => readTenantUses(context.redis, context.namespace, id)));
  const sums = new Map<string, TenantUse>();
  for (const [tenant, use] of ofHosts.flatMap((uses) => [...uses])) {
    const { processorMs, outputBytes, diskBytes } = sums.get(tenant) ?? NOTHING;
    sums.set(tenant, {
      processorMs: processorMs + use.processorMs,
      outputBytes: outputBytes + use.outputBytes,
      diskBytes: diskBytes + use.diskBytes,
    });
  }
  return sums;
}
