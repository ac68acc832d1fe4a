import { isShellfleetError } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { describeRedis, parseRedisUrl, type RedisAddress } from './address.ts';
import { describeClock, readClockAhead } from './clock.ts';
import { followRedisIdentity, type RedisHistory } from './identity.ts';
import { REDIS_DEADLINE_MS } from './ioredis/call-rules.ts';
import { type Recover, recoverFirst } from './ioredis/recover-first.ts';
import { type ConnectionRole, openRedis } from './open-redis.ts';
import { readRefusal } from './read-refusal.ts';
import { loadScripts } from './scripts/script.ts';
import { infoOfNewConnection, refuseUnsuitable, toConnectError } from './suitability.ts';

/** Time limit for the connection to a node, which may accept it and never answer. */
const CONNECT_WITHIN_MS = 2 * REDIS_DEADLINE_MS;

export interface Connected {
  redis: Redis;
  /** Identity of the Redis behind `redis`, with its changes since the first connection. */
  history: RedisHistory;
  /** True with an append-only file. Without the file a restart loses accepted commands. */
  persistent: boolean;
  /** Warning when the clocks of this process and of Redis are far apart. Never rejects. */
  clockProblem: Promise<string | undefined>;
  /** Opens another connection to the same Redis. A process may have five connections. */
  duplicate(role: ConnectionRole, name: string): Redis;
  /** Sets `recover`, which runs after each reconnection of `redis` before any other call. It may be set only once. */
  recoverFirst(recover: Recover): void;
}

/** Connects, and loads the scripts for a host. Throws QUEUE_UNAVAILABLE, or REDIS_UNSUITABLE with the reason. */
export async function connectRedis(url: string, role: ConnectionRole, name: string): Promise<Connected> {
  const place = describeRedis(url);
  const address = parseRedisUrl(url);
  const connection = (as: ConnectionRole, connectionName: string) => openRedis(address, as, connectionName);
  const redis = connection(role, name);
  const history = followRedisIdentity(redis);
  // ioredis rejects only with "connection is closed". The reason is in its error events, most precisely in those of
  // sentinels.
  const reasons: { error?: Error; sentinelError?: Error } = {};
  const remember = (error: Error) => {
    reasons.error = error;
  };
  const rememberSentinel = (error: Error) => {
    reasons.sentinelError = error;
  };
  redis.on('error', remember).on('sentinelError', rememberSentinel);
  try {
    await connectOnce(redis);
    const { persistent } = await refuseUnsuitable(redis, place, infoOfNewConnection);
    // A producer may end after few calls, so its first call loads the scripts, unless a host has loaded them.
    if (role === 'host') await loadScripts(redis);
    return {
      redis,
      history,
      persistent,
      clockProblem: readClockAhead(redis).then(
        (aheadMs) => describeClock(aheadMs, place),
        () => undefined,
      ),
      duplicate: connection,
      recoverFirst: (recover) => recoverFirst(redis, recover),
    };
  } catch (error) {
    redis.disconnect();
    throw toConnectError(error, place, await explain(error, reasons.sentinelError ?? reasons.error, address));
  } finally {
    redis.off('error', remember).off('sentinelError', rememberSentinel);
  }
}

/** Returns the reason of a failure. If the server closed the connection, this is the server's own message. */
async function explain(error: unknown, reason: Error | undefined, address: RedisAddress): Promise<unknown> {
  const [node] = address.nodes;
  const isClosed = reason === undefined || /ECONNRESET|EPIPE/.test(reason.message);
  const mayAsk = address.kind === 'single' && address.tls === undefined && !isShellfleetError(error);
  return isClosed && mayAsk && node !== undefined ? ((await readRefusal(node)) ?? reason) : reason;
}

/** Rejects at the first failure, because ioredis would ask the sentinels forever. */
async function connectOnce(redis: Redis): Promise<void> {
  const failed = Promise.withResolvers<void>();
  const timer = setTimeout(() => failed.reject(new Error('it did not answer in time')), CONNECT_WITHIN_MS);
  redis.once('error', failed.reject);
  const connecting = redis.connect();
  connecting.catch(() => {});
  await Promise.race([connecting, failed.promise]).finally(() => {
    clearTimeout(timer);
    redis.off('error', failed.reject);
  });
}

/** Throws, as connectRedis does, when Redis does not answer on this connection or has become unsuitable. */
export async function checkRedis(redis: Redis, url: string): Promise<void> {
  const place = describeRedis(url);
  await refuseUnsuitable(redis, place).catch((error: unknown) => {
    throw toConnectError(error, place);
  });
}
