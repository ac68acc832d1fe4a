import {
  type AppliedConfiguration,
  appliedConfigurationSchema,
  encodeQuotas,
  encodeWakeUp,
  type FleetConfiguration,
  type FleetKeys,
  parseOrThrow,
  type TenantQuotas,
  tenantQuotasSchema,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { throwQueueError } from '../queue-error.ts';

/**
 * Reads the newest configuration. Returns undefined if none was applied. Throws QUEUE_UNAVAILABLE, and COMMAND_INVALID
 * for a value that this version cannot use.
 */
export async function readFleetConfiguration(
  redis: Redis,
  fleet: FleetKeys,
): Promise<AppliedConfiguration | undefined> {
  const stored = await redis.hgetall(fleet.configuration).catch(throwQueueError);
  if (Object.keys(stored).length === 0) return undefined;
  const what = `Revision ${stored.revision} of the fleet's configuration in Redis`;
  return parseOrThrow(appliedConfigurationSchema, stored, 'COMMAND_INVALID', what);
}

/** Reads the quotas of one tenant, without the whole configuration. Throws QUEUE_UNAVAILABLE. */
export async function readTenantQuotas(redis: Redis, fleet: FleetKeys, tenant: string): Promise<TenantQuotas> {
  const stored = await redis.hget(fleet.quotas, tenant).catch(throwQueueError);
  return tenantQuotasSchema.safeParse(stored).data ?? {};
}

/** Stores a configuration, tells the hosts, and returns its revision. Throws QUEUE_UNAVAILABLE. */
export async function writeFleetConfiguration(
  redis: Redis,
  fleet: FleetKeys,
  { configuration, appliedBy }: { configuration: FleetConfiguration; appliedBy: string },
): Promise<number> {
  const text = JSON.stringify(configuration);
  const quotas = encodeQuotas(configuration);
  const changes = redis
    .multi()
    .hincrby(fleet.configuration, 'revision', 1)
    .hset(fleet.configuration, { configuration: text, appliedBy, appliedAt: new Date().toISOString() })
    .del(fleet.quotas);
  if (Object.keys(quotas).length > 0) changes.hset(fleet.quotas, quotas);
  const replies = await changes.exec().catch(throwQueueError);
  const [error, revision] = replies?.[0] ?? [];
  if (error) throwQueueError(error);
  // Hosts read the configuration regularly too, so a lost message only delays them.
  await redis.publish(fleet.sessionsWakeUps, encodeWakeUp({ type: 'configuration' })).catch(() => {});
  return Number(revision);
}
