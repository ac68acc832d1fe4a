import { Fleet } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { startOwnRedisIn } from '../support/own-redis.ts';
import { redisImage, redisVersions } from '../support/redis-images.ts';
import { startFleet } from '../support/start-fleet.ts';

describe('connecting to Redis', () => {
  test.each(redisVersions)('is refused with the name of the setting when Redis may evict keys: %s', async (version) => {
    await using own = await startOwnRedisIn(
      await redisImage(version),
      '--maxmemory',
      '100mb',
      '--maxmemory-policy',
      'allkeys-lru',
    );
    const connecting = Fleet.connect({ redisUrl: own.url, sealKeys: [Buffer.alloc(32, 1).toString('base64')] });
    await expect(connecting).rejects.toMatchObject({
      code: 'REDIS_UNSUITABLE',
      retryable: false,
      message: expect.stringMatching(/maxmemory-policy.*allkeys-lru.*noeviction/),
    });
    // With a namespace of its own, the fleet has no identity before its worker starts.
    await expect(startFleet({ redisUrl: own.url, namespace: 't-evicting' })).rejects.toThrow(
      /maxmemory-policy.*allkeys-lru.*noeviction/,
    );
    expect(await own.redis.keys('*')).toEqual([]);
  });
});
