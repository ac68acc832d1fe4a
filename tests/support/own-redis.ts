import type { Redis } from 'ioredis';
import { startRedisProcess } from './redis-process.ts';

/** A redis-server of the test's own, for tests that a shared one does not allow: other settings, a flush, an outage. */
export interface OwnRedis extends AsyncDisposable {
  url: string;
  redis: Redis;
  /** SIGSTOP (SIGCONT resumes it): connections stay open, replies do not arrive. */
  freeze(): void;
  thaw(): void;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** A new process on the same port, with the data of the append-only file if the settings enable it. */
  start(): Promise<void>;
  /** kill(), then start(). */
  restart(): Promise<void>;
}

export function startOwnRedis(...settings: string[]): Promise<OwnRedis> {
  return ownRedis(settings);
}

/** The same in a container of this image. */
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
