import { hostKeys, type TenantUse, tenantUseSchema, tryJson } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { throwQueueError } from '../queue-error.ts';

/** Reads what each tenant uses on a host, as its worker has reported. Throws QUEUE_UNAVAILABLE. */
export async function readTenantUses(redis: Redis, namespace: string, host: string): Promise<Map<string, TenantUse>> {
  const stored = await redis.hgetall(hostKeys(namespace, host).uses).catch(throwQueueError);
  const uses = Object.entries(stored).map(([tenant, text]) => [tenant, tenantUseSchema.safeParse(tryJson(text)).data]);
  return new Map(uses.filter((use): use is [string, TenantUse] => use[1] !== undefined));
}

/** Reports what each tenant uses on a host. Throws QUEUE_UNAVAILABLE. */
export async function writeTenantUses(
  redis: Redis,
  namespace: string,
  host: string,
  uses: ReadonlyMap<string, TenantUse>,
): Promise<void> {
  const values = Object.fromEntries([...uses].map(([tenant, use]) => [tenant, JSON.stringify(use)]));
  if (uses.size > 0) await redis.hset(hostKeys(namespace, host).uses, values).catch(throwQueueError);
}
