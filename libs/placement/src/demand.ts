import { createHash } from 'node:crypto';
import { type FleetKeys, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { PlacementClass } from './placement.ts';

const tenantDemandSchema = z.object({
  /** hash of the tenant's name */
  tenant: z.string(),
  /** slots that the tenant holds, on all hosts and in all classes */
  held: z.number(),
  weight: z.number(),
  /** slots that the tenant may still get before it is at its quota; absent without one */
  room: z.number().optional(),
  /** number of waiting sessions of each class */
  waiting: z.record(z.string(), z.number()),
});
export type TenantDemand = z.infer<typeof tenantDemandSchema>;

/** What the waiting tenants hold and wait for, in the order in which equal ones get slots. */
export type Demand = readonly TenantDemand[];

/** Parses the value of `fleetKeys().demand`. No tenant waits as far as is known without one. */
export const parseDemand = (text: string | null): Demand => parseCounted(text) ?? [];

const parseCounted = (text: string | null): Demand | undefined =>
  z.array(tenantDemandSchema).safeParse(tryJson(text ?? '')).data;

/**
 * Reads what the waiting tenants hold and wait for. Returns undefined if no host has counted it within 5 s, or if it
 * cannot be parsed.
 */
export async function readDemand(redis: Redis, fleet: FleetKeys): Promise<Demand | undefined> {
  return parseCounted(await redis.get(fleet.demand));
}

/** Returns the hash by which a demand names a tenant. */
export const hashTenant = (tenant: string): string => createHash('sha1').update(tenant).digest('hex');

/** Returns what a tenant holds and waits for. Returns undefined if it does not wait. */
export function findDemand(demand: Demand, tenant: string): TenantDemand | undefined {
  const hash = hashTenant(tenant);
  return demand.find((one) => one.tenant === hash);
}

/** Place of a session in the order in which slots are given to all tenants. */
export interface Place {
  /** Position from 1. */
  position: number;
  /** Number of all waiting sessions. */
  length: number;
  /** How many sessions of its tenant have to end before the quota leaves room for it. */
  overQuota: number;
  /** The tenant's quota of slots. */
  quota: number | undefined;
}

/**
 * Finds the place of a session that has `ahead` of the `waiting` sessions of its tenant before it. Counts the sessions
 * of `classes`. The order is that of `look`: each slot goes to the tenant that then holds the fewest for its weight.
 */
export function placeAmongTenants(
  { tenant, ahead, waiting }: { tenant: string; ahead: number; waiting: number },
  demand: Demand,
  classes: ReadonlySet<PlacementClass>,
): Place {
  const hash = hashTenant(tenant);
  const found = demand.findIndex((one) => one.tenant === hash);
  // A tenant that began to wait a moment ago is not listed yet. It is the last one among equals.
  const at = found === -1 ? demand.length : found;
  const own = demand[at] ?? { held: 0, weight: 1, room: undefined };
  let [before, length] = [0, waiting];
  for (const [index, other] of demand.entries()) {
    if (index === at) continue;
    const count = [...classes].reduce((sum, name) => sum + (other.waiting[name] ?? 0), 0);
    // The other's session k gets its slot first if (held + k) / weight is less than for this session, or equal.
    const limit = ((own.held + ahead) * other.weight) / own.weight - other.held;
    const isEqualBefore = isBefore(
      { ahead: limit, weight: other.weight, at: index },
      { ahead, weight: own.weight, at },
    );
    const earlier = Number.isInteger(limit) && isEqualBefore ? limit + 1 : Math.ceil(limit);
    before += Math.max(0, Math.min(earlier, count, other.room ?? count));
    length += count;
  }
  const overQuota = own.room === undefined ? 0 : Math.max(0, ahead + 1 - own.room);
  const quota = own.room === undefined ? undefined : own.held + own.room;
  return { position: ahead + before + 1, length, overQuota, quota };
}

interface Turn {
  ahead: number;
  weight: number;
  at: number;
}

/**
 * Tells which of two sessions gets its slot first, if their tenants then hold equally many for their weights: that of
 * the tenant which was given its last slot earlier, or else which is listed first.
 */
function isBefore(one: Turn, other: Turn): boolean {
  if (one.ahead === 0 && other.ahead === 0) return one.at < other.at;
  if (one.ahead === 0 || other.ahead === 0) return one.ahead === 0;
  // The last slot of the one with the smaller weight came when both held less.
  if (one.weight !== other.weight) return one.weight < other.weight;
  return one.ahead === other.ahead ? one.at < other.at : one.ahead < other.ahead;
}
