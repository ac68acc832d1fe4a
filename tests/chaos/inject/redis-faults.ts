import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Injection } from './stage.ts';

const kill: Injection = async ({ redis }) => {
  await redis.kill();
  return { target: 'redis', heal: () => redis.start() };
};

const stop: Injection = async ({ redis }) => {
  redis.freeze();
  return {
    target: 'redis',
    async heal() {
      redis.thaw();
    },
  };
};

const restart: Injection = async ({ redis }) => {
  await redis.restart();
  return { target: 'redis', heal: async () => {} };
};

const REWIND_MS = 1_500;

/**
 * Returns Redis to an earlier state. Its last acknowledged writes are lost, as after a failover to a replica that
 * lagged behind.
 */
const restore: Injection = async ({ redis, redisDirectory }) => {
  const data = join(redisDirectory, 'appendonlydir');
  const older = join(redisDirectory, 'older');
  const restoredTo = Date.now();
  await cp(data, older, { recursive: true });
  await delay(REWIND_MS);
  await redis.kill();
  await rm(data, { recursive: true });
  await cp(older, data, { recursive: true });
  await rm(older, { recursive: true });
  return { target: 'redis', restoredTo, heal: () => redis.start() };
};

/** Fills Redis: it refuses writes that need memory, but neither reads nor writes that free memory. */
const full: Injection = async ({ redis }) => {
  await redis.redis.config('SET', 'maxmemory', '1mb');
  return {
    target: 'redis',
    async heal() {
      await redis.redis.config('SET', 'maxmemory', '0');
    },
  };
};

export const redisFaults = {
  'redis-kill': kill,
  'redis-stop': stop,
  'redis-restart': restart,
  'redis-restore': restore,
  'redis-full': full,
};
