import {
  type BackendFactory,
  type ConnectionOptions,
  Queue,
  QueueKeys,
  RedisConnection,
  RedisQueueBackend,
} from 'bullmq';
import type { Redis } from 'ioredis';

export const ONE_QUEUE = 'one';
export const SESSIONS = 'sessions';
export const SESSIONS_PREFIX = 'bull:{x}';
export const COMMANDS = 'commands';
export const BULLMQ_INBOX = 'bull:inbox';
export const prefixOf = (session: string): string => `bull:{${session}}`;
export const bellOf = (session: string): string => `bull:bell:${session}`;

export type Backend = BackendFactory<RedisQueueBackend, ConnectionOptions>;

/**
 * Returns one connection for any number of Queue and Worker objects. They have no connections of their own, send no
 * INFO, and add no listeners.
 */
export function createSharedBackend(redis: Redis): Backend {
  const connection = new RedisConnection(redis, { shared: true, blocking: false });
  return (name, options) => {
    const keys = new QueueKeys((options as { prefix?: string }).prefix);
    const toKey = (type: string): string => keys.toKey(name, type);
    return new RedisQueueBackend(connection, name, keys.getKeys(name), toKey, options, undefined, false);
  };
}

export function openCommandQueue(redis: Redis, session: string, backend: Backend): Queue {
  const defaultJobOptions = { removeOnComplete: true, removeOnFail: true };
  const streams = { events: { maxLen: 0 } };
  const options = { connection: redis, prefix: prefixOf(session), skipMetasUpdate: true, streams, defaultJobOptions };
  return new Queue(COMMANDS, options, backend);
}
