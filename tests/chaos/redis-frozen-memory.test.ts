import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { residentBytes } from '../support/resident-bytes.ts';
import { slotsFor } from '../support/slots-for.ts';

// Promise: the memory of a worker does not grow while Redis is away, whatever its commands print (invariant 8).
// Five minutes with 32 sessions:
// SHELLFLEET_TEST_NOISY=32 SHELLFLEET_TEST_FROZEN_MS=300000 vitest run --project chaos
// tests/chaos/redis-frozen-memory.test.ts

const SESSIONS = Number(process.env.SHELLFLEET_TEST_NOISY ?? 8);
const FROZEN_MS = Number(process.env.SHELLFLEET_TEST_FROZEN_MS ?? 15_000);
/** Time in which every session has filled its buffers, while nothing can be stored. */
const FILLED_MS = 5_000;
const MOST_GROWTH_BYTES = 64 << 20;

describe('a silent Redis', () => {
  test(`does not grow the memory of a worker with ${SESSIONS} noisy sessions`, {
    timeout: FROZEN_MS + 300_000,
  }, async () => {
    await using redis = await startOwnRedis();
    const { stack, worker, inspect } = await startInspectedFleet({ redisUrl: redis.url, slots: slotsFor(SESSIONS) });
    try {
      const names = Array.from({ length: SESSIONS }, (_, index) => `noisy-${index}`);
      const spec = { limits: { cpus: 0.2 }, output: { streamBytes: 64 << 20 } };
      const sessions = await Promise.all(names.map((name) => stack.fleet.session(name, spec)));
      await Promise.all(sessions.map((session) => session.run('true', { timeoutMs: 120_000 })));
      const floods = await Promise.all(sessions.map((session) => session.submit('yes', { timeoutMs: 3_600_000 })));
      await Promise.all(names.map((name) => inspect.untilOutput(name)));
      redis.freeze();
      await delay(FILLED_MS);
      const filled = await residentBytes(worker.pid);
      let most = 0;
      for (let frozen = FILLED_MS; frozen < FROZEN_MS; frozen += 1_000) {
        await delay(1_000);
        most = Math.max(most, (await residentBytes(worker.pid)) - filled);
      }
      redis.thaw();
      process.stdout.write(`${JSON.stringify({ sessions: SESSIONS, frozenMs: FROZEN_MS, filled, growth: most })}\n`);
      expect(most).toBeLessThan(MOST_GROWTH_BYTES);
      await Promise.all(floods.map((flood) => flood.cancel()));
      const ends = await Promise.all(floods.map((flood) => flood.result()));
      expect(ends.map(({ outcome }) => outcome)).toEqual(names.map(() => 'cancellation'));
    } finally {
      redis.thaw();
      await endInspectedFleet(stack, inspect);
    }
  });
});
