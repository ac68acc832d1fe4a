import { type FleetKeys, fleetKeys, LIMITS } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { toQueueError } from '../queue-error.ts';

// Workers record the fleet's retention in Redis. Every process reads it, and passes it to the scripts.

/** Retention that this process last read or recorded, by connection and namespace. */
const known = new WeakMap<Redis, Map<string, number>>();

/** Returns the retention for the scripts of this connection: the default until a retention is read. */
export function retentionOf(redis: Redis, namespace: string): number {
  return known.get(redis)?.get(namespace) ?? LIMITS.defaultRetentionMs;
}

/** Reads the fleet's retention. The default applies until a worker has recorded a retention. */
export async function readRetention(redis: Redis, namespace: string): Promise<number> {
  const stored = await redis.get(fleetKeys(namespace).retention).catch((error: unknown) => {
    throw toQueueError(error);
  });
  const retentionMs = Number(stored);
  return remember(redis, namespace, retentionMs > 0 ? retentionMs : retentionOf(redis, namespace));
}

/** Records the fleet's retention. The caller has checked that no live host has another retention. */
export async function recordRetention(redis: Redis, fleet: FleetKeys, retentionMs: number): Promise<void> {
  await redis.set(fleet.retention, retentionMs);
  remember(redis, fleet.namespace, retentionMs);
}

function remember(redis: Redis, namespace: string, retentionMs: number): number {
  const namespaces = known.get(redis) ?? new Map<string, number>();
  known.set(redis, namespaces.set(namespace, retentionMs));
  return retentionMs;
}
