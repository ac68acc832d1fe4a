import { createHash } from 'node:crypto';
import { toKeyspace } from '@shellfleet/protocol';
import { declareFleet, joinFleet, openRedis, parseRedisUrl } from '@shellfleet/redis';

/**
 * Returns the keyspace of a test's fleet. The fleet id is derived from the namespace, which is random already, so that
 * a test can compute the names of keys.
 */
export const keyspaceOf = (namespace: string) => toKeyspace(namespace, fleetIdOf(namespace));

export const fleetIdOf = (namespace: string) => createHash('sha256').update(namespace).digest('hex').slice(0, 12);

/** Declares the fleet id that keyspaceOf() uses, so that hosts and producers need not wait for a declaration. */
export async function declareTestFleet(redisUrl: string, namespace: string): Promise<void> {
  const redis = openRedis(parseRedisUrl(redisUrl), 'producer', 'declares');
  await declareFleet(redis, namespace, fleetIdOf(namespace)).finally(() => redis.disconnect());
}

/** Returns the keyspace of a fleet whose fleet id is random. */
export async function readKeyspace(redisUrl: string, namespace: string): Promise<string> {
  const redis = openRedis(parseRedisUrl(redisUrl), 'producer', 'reads');
  return toKeyspace(namespace, await joinFleet(redis, namespace, 'host').finally(() => redis.disconnect()));
}
