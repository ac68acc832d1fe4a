import { Cluster, type Redis } from 'ioredis';
import { onInfo } from './ioredis/changes.ts';

/** Identifies a Redis process and the history of its data. */
export interface RedisIdentity {
  /** Changes with each restart and failover. */
  runId: string;
  /** Changes with each failover, even if the process stays the same. */
  replicationId: string;
}

/**
 * Identities of the Redis behind one connection. A Redis that was restarted, restored or promoted may lack the newest
 * writes, and has another identity. The identity is read before the connection is ready.
 */
export interface RedisHistory {
  /** Identity that the last answer reported. Undefined before the first answer, and if Redis reports no identity. */
  readonly identity: RedisIdentity | undefined;
  /** Number of connections whose Redis had another identity than the connection before. */
  readonly changes: number;
  /** Time of the last change (ms, `Date.now()`). */
  readonly changedAt: number | undefined;
}

export async function readRedisIdentity(redis: Redis): Promise<RedisIdentity | undefined> {
  return toIdentity(parseInfo(await redis.info()));
}

/**
 * Follows the identity of the Redis behind a connection. It reads the replies to the INFO that ioredis itself sends.
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
 * Follows the identity of each node. Once every primary is known, a new address counts as a change too, because a
 * failover promotes a node. `identity` is that of the node that answered last.
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

const lastInfo = new WeakMap<Redis, Map<string, string>>();

/** Returns the last INFO that a followed connection has received, if any. */
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
  // A Redis that still loads its data takes no call, and may report another replication id afterwards.
  if (runId === undefined || replicationId === undefined || info.get('loading') === '1') return undefined;
  return { runId, replicationId };
}

export function parseInfo(text: string): Map<string, string> {
  const lines = text.split('\r\n').filter((line) => line.includes(':') && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}
