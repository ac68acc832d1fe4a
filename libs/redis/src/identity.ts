import { Cluster, type Redis } from 'ioredis';
import { onInfo } from './ioredis/on-info.ts';

/** Identifies a Redis process and the history of its data. */
export interface RedisIdentity {
  /** of the process: another one after each restart, and after a failover */
  runId: string;
  /** of its replication history: another one after a failover, also where the process stayed the same */
  replicationId: string;
}

/**
 * The Redis behind one connection. A Redis of another identity may have older data: one that was restarted, restored, or promoted from a
 * replica may lack the newest writes. One of the same identity has lost nothing.
 *
 * The identity is known before the connection is ready: at every call that such a Redis answers, these fields describe that Redis.
 */
export interface RedisHistory {
  /** Undefined before the first connection, and when the Redis does not report an identity. */
  readonly identity: RedisIdentity | undefined;
  /** How often a connection found another identity than the one before it. */
  readonly changes: number;
  /** When that was last noticed (ms, `Date.now()`). Undefined while it has not happened. */
  readonly changedAt: number | undefined;
}

export async function readRedisIdentity(redis: Redis): Promise<RedisIdentity | undefined> {
  return toIdentity(parseInfo(await redis.info()));
}

/**
 * Follows the identity of the Redis behind a connection, over all its reconnections. No call is added: ioredis asks for INFO itself before a
 * connection is ready, and the reply is read here.
 */
export function followRedisIdentity(redis: Redis): RedisHistory {
  const client: unknown = redis;
  if (client instanceof Cluster) return followClusterIdentity(client);
  const history = newHistory();
  onIdentity(redis, (identity) => {
    const before = history.identity;
    history.identity = identity;
    if (before !== undefined && !isSame(before, identity)) recordChange(history);
  });
  return history;
}

/**
 * Of a Cluster, each node is another Redis. A change is a node at a known address with another identity, or a node at an address that was
 * not known once the first call was made: a failover promotes one. `identity` is that of the node which answered last.
 */
function followClusterIdentity(cluster: Cluster): RedisHistory {
  const history = newHistory();
  const known = new Map<string, RedisIdentity>();
  let isComplete = false;
  cluster.on('+node', (node: Redis) => {
    const address = `${node.options.host}:${node.options.port}`;
    onIdentity(node, (identity) => {
      const before = known.get(address);
      known.set(address, identity);
      history.identity = identity;
      if (before === undefined ? isComplete : !isSame(before, identity)) recordChange(history);
      isComplete ||= cluster.nodes('master').every(({ options }) => known.has(`${options.host}:${options.port}`));
    });
  });
  return history;
}

type History = { -readonly [Field in keyof RedisHistory]: RedisHistory[Field] };

function newHistory(): History {
  return { identity: undefined, changes: 0, changedAt: undefined };
}

function recordChange(history: History): void {
  history.changes += 1;
  history.changedAt = Date.now();
}

/** By connection: the INFO that it read last. */
const lastInfo = new WeakMap<Redis, Map<string, string>>();

/** What a followed connection read when it became ready, or later. Undefined when it could not. */
export function lastInfoOf(redis: Redis): Map<string, string> | undefined {
  return lastInfo.get(redis);
}

function onIdentity(redis: Redis, listener: (identity: RedisIdentity) => void): void {
  onInfo(redis, (reply) => {
    const info = parseInfo(reply);
    lastInfo.set(redis, info);
    const identity = toIdentity(info);
    if (identity !== undefined) listener(identity);
  });
}

function isSame(one: RedisIdentity, other: RedisIdentity): boolean {
  return one.runId === other.runId && one.replicationId === other.replicationId;
}

function toIdentity(info: Map<string, string>): RedisIdentity | undefined {
  const runId = info.get('run_id');
  const replicationId = info.get('master_replid');
  // A Redis that loads its data takes no call yet, and may report another replication id afterwards.
  if (runId === undefined || replicationId === undefined || info.get('loading') === '1') return undefined;
  return { runId, replicationId };
}

/** The fields of a reply to INFO. */
export function parseInfo(text: string): Map<string, string> {
  const lines = text.split('\r\n').filter((line) => line.includes(':') && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}
