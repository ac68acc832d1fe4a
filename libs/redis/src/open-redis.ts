import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisAddress } from './address.ts';
import { REDIS_DEADLINE_MS } from './ioredis/call-rules.ts';
import { changeCluster, changeConnection } from './ioredis/changes.ts';

/**
 * Behaviour while Redis is unavailable. `producer`: calls fail within the deadline. `host`: calls fail at once and are
 * never sent later; the caller repeats them. `subscriber`: subscribes again forever.
 */
export type ConnectionRole = 'producer' | 'host' | 'subscriber';

const ROLE_OPTIONS = {
  producer: { maxRetriesPerRequest: 1 },
  // With 0 retries, a broken connection fails the calls that wait for a reply.
  host: {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  },
  // A Redis that still loads its data takes subscriptions, so no ready check is needed.
  subscriber: { maxRetriesPerRequest: null, enableReadyCheck: false },
} as const satisfies Record<ConnectionRole, RedisOptions>;

const backOff = (attempt: number) => Math.min(50 * 2 ** attempt, 1_000);

/**
 * Opens a client of the Redis at this address. It connects on first use. If that fails, the calls that need the
 * connection reject.
 */
export function openRedis(address: RedisAddress, role: ConnectionRole, connectionName: string): Redis {
  return address.kind === 'cluster'
    ? openCluster(address, role, connectionName)
    : openNode(address, role, connectionName);
}

function openNode(address: RedisAddress, role: ConnectionRole, connectionName: string): Redis {
  const redis = new Redis({
    ...toOptions(address, connectionName),
    ...ROLE_OPTIONS[role],
    ...toPlace(address),
    lazyConnect: true,
    retryStrategy: backOff,
    // A primary may have become a replica. A reconnection finds the new primary.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  // Without a listener, the error event would end the process.
  redis.on('error', () => {});
  changeConnection(redis);
  return redis;
}

function toPlace(address: RedisAddress) {
  if (address.kind === 'cluster') return {};
  const { nodes, db } = address;
  if (address.kind === 'single') return { ...nodes[0], db };
  const { username: sentinelUsername, password: sentinelPassword } = address.sentinel;
  return {
    sentinels: nodes.map(({ host, port }) => ({ host, port })),
    name: address.name,
    db,
    ...(sentinelUsername === undefined ? {} : { sentinelUsername }),
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    ...(address.tls === undefined ? {} : { sentinelTLS: address.tls, enableTLSForSentinelMode: true }),
    sentinelRetryStrategy: backOff,
    sentinelCommandTimeout: REDIS_DEADLINE_MS,
  };
}

/**
 * Opens a Cluster. The type is cast to Redis, because only members of the connection itself differ. `mastersOf`
 * distinguishes the two.
 */
function openCluster(address: RedisAddress, role: ConnectionRole, connectionName: string): Redis {
  const cluster = new Cluster(
    address.nodes.map(({ host, port }) => ({ host, port })),
    {
      lazyConnect: true,
      clusterRetryStrategy: backOff,
      slotsRefreshTimeout: REDIS_DEADLINE_MS,
      // Calls are repeated until their deadline while the nodes agree on a new primary.
      maxRedirections: REDIS_DEADLINE_MS / 100,
      redisOptions: { ...toOptions(address, connectionName), ...ROLE_OPTIONS[role] },
      // The nodes' names must not become addresses, because TLS certificates contain the names as the cluster reports
      // them.
      ...(address.tls === undefined ? {} : { dnsLookup: (host, callback) => callback(null, host) }),
    },
  );
  cluster.on('error', () => {});
  changeCluster(cluster);
  return cluster as unknown as Redis;
}

function toOptions({ username, password, tls, family }: RedisAddress, connectionName: string) {
  return {
    connectionName,
    connectTimeout: REDIS_DEADLINE_MS,
    commandTimeout: REDIS_DEADLINE_MS,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
    ...(family === undefined ? {} : { family }),
  };
}

export function isCluster(redis: Redis): boolean {
  return (redis as unknown) instanceof Cluster;
}

/** Returns the nodes that take writes: the known primaries of a Cluster, else the connection itself. */
export function mastersOf(redis: Redis): Redis[] {
  const client: unknown = redis;
  return client instanceof Cluster ? client.nodes('master') : [redis];
}
