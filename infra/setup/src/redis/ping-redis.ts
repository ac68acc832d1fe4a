import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type RedisConfig, redisUrl } from './redis-config.ts';

/** Waits at most `timeoutMs` until Redis replies, or `isGone` reports that its process has ended. */
export async function waitForRedis(config: RedisConfig, timeoutMs: number, isGone: () => boolean): Promise<boolean> {
  for (const giveUpAt = Date.now() + timeoutMs; Date.now() < giveUpAt; await delay(25)) {
    if (await answersPing(config)) return true;
    if (isGone()) return false;
  }
  return false;
}

/** Returns true if the Redis at this address accepts the password and has loaded its data. */
async function answersPing(config: RedisConfig): Promise<boolean> {
  const settings = { lazyConnect: true, enableReadyCheck: false, connectTimeout: 2_000, commandTimeout: 2_000 };
  const redis = new Redis(redisUrl(config), { ...settings, retryStrategy: () => null });
  redis.on('error', () => {}); // reported by connect() and ping()
  try {
    await redis.connect();
    return (await redis.ping()) === 'PONG';
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}
