import { connectRedis } from '@shellfleet/redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { type OwnSentinels, startOwnSentinels } from '../support/own-sentinel.ts';
import { redisImage, redisVersions } from '../support/redis-images.ts';
import { startSessionLoad } from '../support/session-load.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: when the primary of a Redis with sentinels dies, the fleet goes on with the promoted replica. Every command
// ends once or its loss is reported, no command runs twice, and shells keep their state.

describe.each(redisVersions)('Redis with sentinels: %s', (version) => {
  let own: OwnSentinels;
  let stack: TestFleet;
  let inspect: FleetInspector;

  beforeAll(async () => {
    own = await startOwnSentinels(await redisImage(version), '--appendonly', 'yes');
    ({ stack, inspect } = await startInspectedFleet({ redisUrl: own.url }));
  });
  afterAll(() => endInspectedFleet(stack, inspect).finally(() => own[Symbol.asyncDispose]()));

  test('goes on with a promoted replica under load: nothing runs twice, losses are reported', async () => {
    using load = startSessionLoad(stack, inspect, { sessions: 4, commands: 15 });
    await until(
      () => load.ended,
      (count) => count > 12,
    );
    const clients = ((await own.primary.redis.client('LIST')) as string).split('\n');
    for (const name of [/name=shellfleet-worker/, /name=shellfleet-(producer|feeds)/])
      expect(clients.filter((line) => name.test(line)).length).toBeLessThanOrEqual(5);
    const killedAt = performance.now();
    await own.primary.kill();
    await until(
      () => own.replica.redis.info('replication'),
      (text) => text.includes('role:master'),
    );
    const promotedAt = performance.now();
    const atPromotion = load.ended;
    await until(
      () => load.ended,
      (count) => count > atPromotion,
    );
    const ms = [promotedAt, performance.now()].map((at) => Math.round(at - killedAt));
    const { succeeded, failed, problems } = await load.check();
    console.info(`promoted after ${ms[0]} ms, going on after ${ms[1]} ms; ${succeeded} succeeded, ${failed} failed`);
    expect(problems).toEqual([]);
    expect(succeeded).toBeGreaterThan(failed);
  });

  test('is refused with the primary’s name when its sentinels know no such primary', async () => {
    await expect(connectRedis(own.url.replace(/[^/]*$/, 'other'), 'producer', 'test')).rejects.toMatchObject({
      code: 'REDIS_UNSUITABLE',
      message: expect.stringMatching(/knows no primary of this name\. Correct it in SHELLFLEET_REDIS_URL/),
      context: { setting: 'sentinel' },
    });
  });
});
