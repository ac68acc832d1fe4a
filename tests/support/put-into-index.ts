import { fleetKeys, type SessionKeys, tenantKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Puts a session into the index of its tenant, as a producer does: upkeep looks at it at once. */
export async function putIntoIndex(redis: Redis, keys: SessionKeys, score = -Date.now()): Promise<void> {
  const { namespace, tenant, session } = keys;
  await redis.zadd(tenantKeys(namespace, tenant).index, score, session);
  await redis.lpush(fleetKeys(namespace).noted, tenant);
}
