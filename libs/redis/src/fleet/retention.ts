import { type FleetKeys, fleetKeys, LIMITS } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { toQueueError } from '../queue-error.ts';

// The retention of a fleet is in Redis. Its workers record it; every process reads it, and passes it to the scripts.

/** By connection and namespace: the retention as this process last read or recorded it. */
const known = new WeakMap<Redis, Map<string, number>>();

/** The retention that the scripts of this connection use. Until one is read, it is the default. */
export function retentionOf(redis: Redis, namespace: string): number {
  return known.get(redis)?.get(namespace) ?? LIMITS.defaultRetentionMs;
}

/** Reads the fleet's retention. A namespace that no worker has recorded one for has the default. */
export async function readRetention(redis: Redis, namespace: string): Promise<number> {
  const stored = await redis.get(fleetKeys(namespace).retention).catch((error: unknown) => {
    throw toQueueError(error);
  });
  const retentionMs = Number(stored);
  return remember(redis, namespace, retentionMs > 0 ? retentionMs : retentionOf(redis, namespace));
}

/** Records the fleet's retention, for a worker that has made sure that no live host has another one. */
export async function recordRetention(redis: Redis, fleet: FleetKeys, retentionMs: number): Promise<void> {
  await redis.set(fleet.retention, retentionMs);
  remember(redis, fleet.namespace, retentionMs);
}

function remember(redis: Redis, namespace: string, retentionMs: number): number {
  const namespaces = known.get(redis) ?? new Map<string, number>();
  known.set(redis, namespaces.set(namespace, retentionMs));
  return retentionMs;
}
