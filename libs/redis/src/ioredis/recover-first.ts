import type { Redis } from 'ioredis';
import { isCluster } from '../open-redis.ts';
import { redisResumed } from '../retry-while-redis-is-down.ts';

/** Recovers a new connection before any other call. A rejection makes it run again. */
export type Recover = (redis: Redis) => Promise<void>;

const RETRY_MS = 200;

/** From a break of the connection until `recover` has run, fails every call except those on the object that it gets. */
export function recoverFirst(redis: Redis, recover: Recover): void {
  const send = redis.sendCommand;
  let isOpen = redis.status === 'ready';
  redis.sendCommand = (command, stream) => {
    // Before the connection is ready, ioredis sends only its own commands.
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
  // One node of a Cluster can come back alone. The first call to the node connects.
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
