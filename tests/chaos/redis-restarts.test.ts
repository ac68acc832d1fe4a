import { afterEach, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { type OwnRedis, startOwnRedisIn } from '../support/own-redis.ts';
import { redisImage, redisVersions } from '../support/redis-images.ts';
import { startSessionLoad } from '../support/session-load.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: when Redis with an append-only file is killed and restarted under load, every command ends once or its loss
// is reported, none runs twice, and shells keep their state. With appendfsync always no acknowledged write is lost, and
// the fleet goes on within 8 s.

const RESTARTS = 3;
const GOES_ON_WITHIN_MS = 8_000;

let redis: OwnRedis;
let stack: TestFleet;
let inspect: FleetInspector;
afterEach(() => endInspectedFleet(stack, inspect).finally(() => redis[Symbol.asyncDispose]()));

const settings = redisVersions.flatMap((version) =>
  ['always', 'everysec'].map((appendfsync) => ({ version, appendfsync })),
);

describe.each(settings)('Redis with appendfsync $appendfsync, $version', ({ version, appendfsync }) => {
  test(`loses nothing and runs nothing twice over ${RESTARTS} kills under load`, async () => {
    redis = await startOwnRedisIn(await redisImage(version), '--appendonly', 'yes', '--appendfsync', appendfsync);
    ({ stack, inspect } = await startInspectedFleet({ redisUrl: redis.url }));
    using load = startSessionLoad(stack, inspect, { sessions: 4, commands: 24 });
    const goesOn = async (count: number) => {
      const before = load.ended;
      await until(
        () => load.ended,
        (ended) => ended > before + count,
      );
    };
    const took: number[] = [];
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      await goesOn(6);
      await redis.restart();
      const from = performance.now();
      await goesOn(4);
      took.push(Math.round(performance.now() - from));
    }
    const { succeeded, failed, problems } = await load.check();
    console.info(`${appendfsync}: going on after ${took.join(', ')} ms; ${succeeded} succeeded, ${failed} failed`);
    expect(problems).toEqual([]);
    expect(succeeded).toBeGreaterThan(failed);
    expect(Math.min(...took)).toBeLessThan(GOES_ON_WITHIN_MS);
  });
});
