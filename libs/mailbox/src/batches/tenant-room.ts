import { batchesKey, batchKeys, LIMITS, ShellfleetError } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { BatchAccess } from './access.ts';

/** Throws QUOTA_EXCEEDED when a tenant has no room for a further batch of so many bytes. */
export async function requireRoom({ redis, keys }: BatchAccess, bytes: number): Promise<void> {
  const { namespace, tenant, name } = keys;
  const names = await redis.zrange(batchesKey(namespace, tenant), '0', '-1').catch(throwQueueError);
  const reads = names.map(async (other) => {
    const { state } = batchKeys(namespace, tenant, other);
    const stored = await redis.hmget(state, 'bytes', 'outputBytes', 'resultBytes').catch(throwQueueError);
    return stored[0] === null ? [] : [{ name: other, size: stored.reduce((sum, value) => sum + Number(value), 0) }];
  });
  const others = (await Promise.all(reads)).flat();
  // Nothing more is stored under a name that is in use.
  if (others.some((other) => other.name === name)) return;
  const used = others.reduce((sum, { size }) => sum + size, 0);
  if (others.length >= LIMITS.detachedBatches)
    throw noRoom(`Tenant ${tenant} has ${others.length} detached batches, the most that there may be.`);
  if (used + bytes > LIMITS.detachedTenantBytes)
    throw noRoom(
      `The detached batches of tenant ${tenant} have ${used} bytes, and with ${name} over ${LIMITS.detachedTenantBytes}.`,
    );
}

function noRoom(what: string): ShellfleetError {
  return new ShellfleetError('QUOTA_EXCEEDED', `${what} Remove some that have ended: shellfleet batch rm.`);
}
