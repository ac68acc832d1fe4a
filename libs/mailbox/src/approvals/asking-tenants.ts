import { type ApprovalKeys, approvalKeys, type FleetKeys, fleetKeys } from '@shellfleet/protocol';
import { runScript, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';

// Upkeep finds every question through this list of tenants. The score of a tenant is infinite when it has asked since
// upkeep last looked, else the time (ms, by the clock of Redis) when upkeep last found a question of it.

const tidyScript = defineApprovalsScript('tidy');

/** Lists a tenant that is about to ask. Throws QUEUE_UNAVAILABLE. */
export async function noteAsking(redis: Redis, { namespace, tenant }: ApprovalKeys): Promise<void> {
  await redis.zadd(fleetKeys(namespace).asking, '+inf', tenant).catch(throwQueueError);
}

/** Returns the listed tenants. `isNew`: the tenant has asked since its last `keepAsking`. */
export async function readAskingTenants(redis: Redis, fleet: FleetKeys): Promise<{ tenant: string; isNew: boolean }[]> {
  const pairs = await redis.zrange(fleet.asking, '0', '-1', 'WITHSCORES').catch(throwQueueError);
  return pairs.flatMap((tenant, index) => (index % 2 === 0 ? [{ tenant, isNew: pairs[index + 1] === 'inf' }] : []));
}

/** Keeps a tenant in the list, because it has a question at this time (ms, by the clock of Redis). */
export async function keepAsking(redis: Redis, fleet: FleetKeys, tenant: string, nowMs: number): Promise<void> {
  await redis.zadd(fleet.asking, 'XX', nowMs, tenant).catch(throwQueueError);
}

/** Removes tenants that had no question since a time (ms, by the clock of Redis), and their empty answer streams. */
export async function forgetQuietTenants(redis: Redis, fleet: FleetKeys, beforeMs: number): Promise<void> {
  const quiet = await redis.zrange(fleet.asking, '-inf', String(beforeMs), 'BYSCORE').catch(throwQueueError);
  for (const tenant of quiet) {
    const keys = approvalKeys(fleet.namespace, tenant);
    await runScript(redis, tidyScript, [keys.questions], [keys.prefix]);
  }
  // A tenant that has asked in the meantime has an infinite score, so it stays.
  if (quiet.length > 0) await redis.zremrangebyscore(fleet.asking, '-inf', beforeMs).catch(throwQueueError);
}
