import {
  type AppliedConfiguration,
  appliedConfigurationSchema,
  encodeQuotas,
  encodeWakeUp,
  type FleetConfiguration,
  type FleetKeys,
  parseOrThrow,
  quotasKey,
  type TenantQuotas,
  tenantQuotasSchema,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { throwQueueError } from '../queue-error.ts';
import { asNumber } from '../scripts/script.ts';

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

/** Returns whether the configuration is still the newest one, without reading it. Throws QUEUE_UNAVAILABLE. */
export async function isNewestConfiguration(
  redis: Redis,
  fleet: FleetKeys,
  { revision, appliedAt }: AppliedConfiguration,
): Promise<boolean> {
  // Revisions begin again if Redis loses them, so the time is compared as well.
  const stored = await redis.hmget(fleet.configuration, 'revision', 'appliedAt').catch(throwQueueError);
  return stored[0] === String(revision) && stored[1] === appliedAt;
}

/** Reads the quotas of one tenant, without the whole configuration. Throws QUEUE_UNAVAILABLE. */
export async function readTenantQuotas(redis: Redis, namespace: string, tenant: string): Promise<TenantQuotas> {
  const stored = await redis.get(quotasKey(namespace, tenant)).catch(throwQueueError);
  return tenantQuotasSchema.safeParse(stored).data ?? {};
}

/**
 * Script that replaces the configuration, and the quotas of the tenants of the old one by those of the new one.
 * KEYS 1 configuration. ARGV 1 configuration · 2 who applies it · 3 when · 4 JSON: tenant → quotas, JSON ·
 * 5 key of the quotas of the tenant `*`. Returns the revision.
 */
const APPLY = `
local function key(tenant) return (string.gsub(ARGV[5], '%*', tenant)) end
-- Whatever else is stored there does not prevent that it is replaced.
local is_json, before = pcall(cjson.decode, redis.call('HGET', KEYS[1], 'configuration') or '{}')
local tenants = is_json and type(before) == 'table' and before.tenants
for _, tenant in ipairs(type(tenants) == 'table' and tenants or {}) do
  local name = type(tenant) == 'table' and tenant.name
  if type(name) == 'string' and string.match(name, '^[%w._-]+$') then redis.call('DEL', key(name)) end
end
for tenant, quotas in pairs(cjson.decode(ARGV[4])) do redis.call('SET', key(tenant), quotas) end
redis.call('HSET', KEYS[1], 'configuration', ARGV[1], 'appliedBy', ARGV[2], 'appliedAt', ARGV[3])
return redis.call('HINCRBY', KEYS[1], 'revision', 1)`;

/** Stores a configuration, tells the hosts, and returns its revision. Throws QUEUE_UNAVAILABLE. */
export async function writeFleetConfiguration(
  redis: Redis,
  fleet: FleetKeys,
  { configuration, appliedBy }: { configuration: FleetConfiguration; appliedBy: string },
): Promise<number> {
  const quotas = JSON.stringify(encodeQuotas(configuration));
  const values = [JSON.stringify(configuration), appliedBy, new Date().toISOString(), quotas];
  const revision = await redis
    .eval(APPLY, 1, fleet.configuration, ...values, quotasKey(fleet.namespace, '*'))
    .catch(throwQueueError);
  // Hosts read the configuration regularly too, so a lost message only delays them.
  await redis.publish(fleet.sessionsWakeUps, encodeWakeUp({ type: 'configuration' })).catch(() => {});
  return asNumber(revision);
}
