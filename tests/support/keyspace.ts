import { createHash } from 'node:crypto';
import { toKeyspace } from '@shellfleet/protocol';
import { declareFleet, joinFleet, openRedis, parseRedisUrl } from '@shellfleet/redis';

/**
 * The keyspace of a test's fleet. Its identity follows from the namespace, which is random already, so that a test can
 * name keys that it looks at.
 */
export const keyspaceOf = (namespace: string) => toKeyspace(namespace, fleetIdOf(namespace));

export const fleetIdOf = (namespace: string) => createHash('sha256').update(namespace).digest('hex').slice(0, 12);

/** Declares that identity, so that neither hosts nor producers wait for one. */
export async function declareTestFleet(redisUrl: string, namespace: string): Promise<void> {
  const redis = openRedis(parseRedisUrl(redisUrl), 'producer', 'declares');
  await declareFleet(redis, namespace, fleetIdOf(namespace)).finally(() => redis.disconnect());
}

/** The keyspace of a fleet with a random identity. */
export async function readKeyspace(redisUrl: string, namespace: string): Promise<string> {
  const redis = openRedis(parseRedisUrl(redisUrl), 'producer', 'reads');
  return toKeyspace(namespace, await joinFleet(redis, namespace, 'host').finally(() => redis.disconnect()));
}
