import type { Redis } from 'ioredis';
import { isCluster } from '../open-redis.ts';
import { redisResumed } from '../retry-while-redis-is-down.ts';

/** Recovers a new connection before any other call. If it rejects, it runs again. */
export type Recover = (redis: Redis) => Promise<void>;

const RETRY_MS = 200;

/**
 * Makes every call fail from a break of the connection until `recover` has run. Only calls on the object that `recover`
 * gets are sent.
 */
export function recoverFirst(redis: Redis, recover: Recover): void {
  const send = redis.sendCommand;
  let isOpen = redis.status === 'ready';
  redis.sendCommand = (command, ...rest) => {
    // Before the connection is ready, ioredis sends only commands of its own, which must pass.
    if (isOpen || redis.status !== 'ready') return send.call(redis, command, ...rest);
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
  // In a Cluster, a single node can come back. The first call to that node connects to it.
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
      // If the connection broke during the recovery, another `ready` event follows.
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
