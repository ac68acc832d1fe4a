import { ShellfleetError } from '@shellfleet/protocol';
import { Redis, type RedisOptions } from 'ioredis';
import { batchWrites } from './batch-writes.ts';
import { applyCallRules, REDIS_DEADLINE_MS } from './call-rules.ts';
import { type Recover, recoverFirst } from './recovery.ts';
import { followRedisIdentity, parseInfo, type RedisHistory } from './redis-identity.ts';
import { loadMailboxScripts } from './script.ts';

const OLDEST_REDIS = [6, 2] as const;

/**
 * How a connection behaves while Redis is unavailable. `producer`: its calls fail within the deadline, and the caller gets the error.
 * `host`: its calls fail at once and are never sent later; the caller makes them again. `subscriber`: it subscribes again for ever.
 * `blocking`: it retries for ever, and its calls have no deadline, because they wait for data.
 */
export type ConnectionRole = 'producer' | 'host' | 'subscriber' | 'blocking';

const ROLE_OPTIONS: Record<ConnectionRole, RedisOptions> = {
  producer: { maxRetriesPerRequest: 1, commandTimeout: REDIS_DEADLINE_MS },
  // With 0 retries a broken connection fails the calls that are under way.
  host: {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: REDIS_DEADLINE_MS,
  },
  subscriber: { maxRetriesPerRequest: null, commandTimeout: REDIS_DEADLINE_MS },
  blocking: { maxRetriesPerRequest: null },
};

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
  const connection = (as: ConnectionRole, connectionName: string): Redis => {
    const redis = new Redis(url, {
      ...ROLE_OPTIONS[as],
      connectionName,
      connectTimeout: REDIS_DEADLINE_MS,
      lazyConnect: true,
      retryStrategy: (attempt) => Math.min(50 * 2 ** attempt, 1_000),
    });
    // A failure rejects the calls that it concerns. Without a listener, the error event would end the process.
    redis.on('error', () => {});
    batchWrites(redis);
    applyCallRules(redis);
    return redis;
  };
  const redis = connection(role, name);
  const history = followRedisIdentity(redis);
  // ioredis rejects only with "connection is closed". Its error events have the reason.
  let networkError: Error | undefined;
  const remember = (error: Error) => {
    networkError = error;
  };
  redis.on('error', remember);
  try {
    await redis.connect();
    await refuseUnsuitable(redis, place);
    await loadMailboxScripts(redis);
  } catch (error) {
    redis.disconnect();
    throw toConnectError(error, place, networkError);
  }
  redis.off('error', remember);
  return { redis, history, duplicate: connection, recoverFirst: (recover) => recoverFirst(redis, recover) };
}

/** Throws, as connectRedis does, when Redis does not answer on this connection or has become unsuitable since it was opened. */
export async function checkRedis(redis: Redis, url: string): Promise<void> {
  const place = describeRedis(url);
  await refuseUnsuitable(redis, place).catch((error: unknown) => {
    throw toConnectError(error, place);
  });
}

function toConnectError(error: unknown, place: string, networkError?: Error): ShellfleetError {
  if (error instanceof ShellfleetError) return error;
  const reason = describeFailure(networkError ?? error);
  return new ShellfleetError(
    'QUEUE_UNAVAILABLE',
    `Redis at ${place} cannot be reached: ${reason}. Start it, or set SHELLFLEET_REDIS_URL.`,
    { place },
    { cause: error },
  );
}

/** `host:port` of a Redis URL: it can be shown, because it has no password. Throws REDIS_UNSUITABLE when it is not a Redis URL. */
export function describeRedis(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !['redis:', 'rediss:'].includes(parsed.protocol)) {
    throw new ShellfleetError(
      'REDIS_UNSUITABLE',
      'The Redis URL is not of the form redis://[user:password@]host:port[/db] (or rediss://). Check SHELLFLEET_REDIS_URL.',
    );
  }
  return `${parsed.hostname || 'localhost'}:${parsed.port || '6379'}`;
}

/** The reason of a failure. The error of a host name with several addresses has no message of its own, only one for each address. */
function describeFailure(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describeFailure).join(', ');
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}

async function refuseUnsuitable(redis: Redis, place: string): Promise<void> {
  const info = parseInfo(await redis.info());
  const version = info.get('redis_version') ?? '0';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const refuse = (setting: string, message: string): never => {
    throw new ShellfleetError('REDIS_UNSUITABLE', `Redis at ${place} ${message}`, { place, setting, version });
  };
  if (major < OLDEST_REDIS[0] || (major === OLDEST_REDIS[0] && minor < OLDEST_REDIS[1])) {
    refuse('redis_version', `is version ${version}; Shellfleet needs ${OLDEST_REDIS.join('.')} or newer.`);
  }
  const policy = info.get('maxmemory_policy') ?? 'noeviction';
  if (policy !== 'noeviction') {
    refuse(
      'maxmemory-policy',
      `has maxmemory-policy ${policy}, so it may drop accepted commands. Set it: CONFIG SET maxmemory-policy noeviction.`,
    );
  }
  if (info.get('role') === 'slave')
    refuse('replicaof', 'is a replica and takes no writes. Point SHELLFLEET_REDIS_URL at its primary.');
}
