import type { Redis } from 'ioredis';
import { isCluster } from '../open-redis.ts';
import { redisResumed } from '../retry-while-redis-is-down.ts';

/** Runs on a new connection before any other call. Rejects when it could not do its work; it is then called again. */
export type Recover = (redis: Redis) => Promise<void>;

const RETRY_MS = 200;

/**
 * From the moment at which the connection breaks until `recover` has run on the next one, every other call fails as if there were no
 * connection. `recover` gets an object for its own calls, which are not held back.
 */
export function recoverFirst(redis: Redis, recover: Recover): void {
  const send = redis.sendCommand;
  let isOpen = redis.status === 'ready';
  redis.sendCommand = (command, stream) => {
    // Before the connection is ready, ioredis sends its own commands only.
    if (isOpen || redis.status !== 'ready') return send.call(redis, command, stream);
    command.reject(new Error('The connection is new, and other calls come first'));
    return command.promise;
  };
  const direct: Redis = Object.create(redis, {
    sendCommand: { value: (...args: Parameters<Redis['sendCommand']>) => send.apply(redis, args) },
  });
  let connection = 0;
  const broken = () => {
    isOpen = false;
    connection += 1;
  };
  redis.on('close', broken);
  redis.on('ready', () => void run(connection));
  // Of a Cluster, one node can come back alone. The first call to it connects.
  if (isCluster(redis)) {
    redis.on('+node', () => {
      broken();
      void run(connection);
    });
  }

  async function run(started: number): Promise<void> {
    try {
      await recover(direct);
    } catch {
      // A connection that broke meanwhile is followed by another `ready`.
      setTimeout(() => {
        if (started === connection) void run(started);
      }, RETRY_MS).unref();
      return;
    }
    if (started !== connection) return;
    isOpen = true;
    redisResumed();
  }
}
