import type { Redis } from 'ioredis';
import { REDIS_DEADLINE_MS } from './call-rules.ts';
import { type ConnectionRole, openRedis } from './open-redis.ts';
import { type Recover, recoverFirst } from './recovery.ts';
import { describeRedis, parseRedisUrl } from './redis-address.ts';
import { followRedisIdentity, type RedisHistory } from './redis-identity.ts';
import { loadMailboxScripts } from './script.ts';
import { refuseUnsuitable, toConnectError } from './suitability.ts';

/** Some forms of Redis are asked again and again before they count as out of reach: sentinels, and the nodes of a Cluster. */
const CONNECT_WITHIN_MS = 2 * REDIS_DEADLINE_MS;

export interface Connected {
  redis: Redis;
  /** The Redis behind `redis`: whether it is still the one of the first connection. */
  history: RedisHistory;
  /** Another connection to the same Redis. It counts towards the five connections that a process may have. */
  duplicate(role: ConnectionRole, name: string): Redis;
  /** After each reconnection of `redis`, `recover` runs before any other call. Call this once at most. */
  recoverFirst(recover: Recover): void;
}

/**
 * Connects, rejects a Redis that could lose accepted commands, and loads the mailbox scripts.
 * Throws QUEUE_UNAVAILABLE (out of reach), REDIS_UNSUITABLE (named setting or version).
 */
export async function connectRedis(url: string, role: ConnectionRole, name: string): Promise<Connected> {
  const place = describeRedis(url);
  const address = parseRedisUrl(url);
  const connection = (as: ConnectionRole, connectionName: string) => openRedis(address, as, connectionName);
  const redis = connection(role, name);
  const history = followRedisIdentity(redis);
  // ioredis rejects only with "connection is closed". Its error events have the reason.
  let networkError: Error | undefined;
  const remember = (error: Error) => {
    networkError = error;
  };
  redis.on('error', remember);
  try {
    await withinDeadline(redis.connect());
    await refuseUnsuitable(redis, place);
    await loadMailboxScripts(redis);
  } catch (error) {
    redis.disconnect();
    throw toConnectError(error, place, networkError);
  }
  redis.off('error', remember);
  return { redis, history, duplicate: connection, recoverFirst: (recover) => recoverFirst(redis, recover) };
}

async function withinDeadline(connecting: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(() => late.reject(new Error('it did not answer in time')), CONNECT_WITHIN_MS);
  connecting.catch(() => {});
  await Promise.race([connecting, late.promise]).finally(() => clearTimeout(timer));
}

/** Throws, as connectRedis does, when Redis does not answer on this connection or has become unsuitable since it was opened. */
export async function checkRedis(redis: Redis, url: string): Promise<void> {
  const place = describeRedis(url);
  await refuseUnsuitable(redis, place).catch((error: unknown) => {
    throw toConnectError(error, place);
  });
}
