import type { Redis } from 'ioredis';
import { startRedisProcess } from './redis-process.ts';

/**
 * A redis-server of one test, for faults and settings that a shared server does not allow, such as a flush or an
 * outage.
 */
export interface OwnRedis extends AsyncDisposable {
  url: string;
  redis: Redis;
  /** Stops the process with SIGSTOP until thaw(): connections stay open, and replies do not arrive. */
  freeze(): void;
  thaw(): void;
  /** Sends SIGKILL, and waits until the process is gone. */
  kill(): Promise<void>;
  /** Starts a new process on the same port. It loads the append-only file, if the settings enable one. */
  start(): Promise<void>;
  /** kill(), then start(). */
  restart(): Promise<void>;
}

export function startOwnRedis(...settings: string[]): Promise<OwnRedis> {
  return ownRedis(settings);
}

/** Starts a Redis of one test in a container of this image. */
export function startOwnRedisIn(image: string, ...settings: string[]): Promise<OwnRedis> {
  return ownRedis(settings, image);
}

async function ownRedis(settings: readonly string[], image?: string): Promise<OwnRedis> {
  const server = await startRedisProcess({ settings: ['--save', '', '--appendonly', 'no', ...settings], image });
  return {
    url: `redis://127.0.0.1:${server.port}`,
    redis: server.redis,
    freeze: () => server.signal('SIGSTOP'),
    thaw: () => server.signal('SIGCONT'),
    kill: server.kill,
    start: server.start,
    async restart() {
      await server.kill();
      await server.start();
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
