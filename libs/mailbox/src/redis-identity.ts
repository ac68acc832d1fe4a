import { Redis } from 'ioredis';

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
  const history = { identity: undefined, changes: 0, changedAt: undefined } as {
    -readonly [Field in keyof RedisHistory]: RedisHistory[Field];
  };
  const record = (reply: unknown) => {
    const identity = typeof reply === 'string' ? toIdentity(parseInfo(reply)) : undefined;
    if (identity === undefined) return;
    const before = history.identity;
    history.identity = identity;
    if (before === undefined || isSame(before, identity)) return;
    history.changes += 1;
    history.changedAt = Date.now();
  };
  const sendCommand = Object.hasOwn(redis, 'sendCommand') ? redis.sendCommand : undefined;
  redis.sendCommand = (command, ...rest) => {
    if (command.name === 'info') void command.promise.then(record, () => {});
    // Looked up at each call: instrumentation replaces it on the prototype.
    return (sendCommand ?? Redis.prototype.sendCommand).call(redis, command, ...rest);
  };
  return history;
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
