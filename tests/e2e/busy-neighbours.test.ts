// The time of a short command beside sessions that use all processors.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

/** Number of busy sessions. The promise is about 64 on two processors. */
const BUSY = Number(process.env.SHELLFLEET_TEST_LOOPS ?? 16);
const COMMANDS = 101;

let stack: TestFleet;
beforeAll(async () => {
  // A tenant cannot have the last eighth of the slots.
  stack = await startFleet({ slots: 2 * BUSY });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** Runs a loop without end in a session of its own. Resolves when the loop has begun. */
async function startLoop(n: number) {
  const session = await stack.fleet.session(`busy-${n}`);
  const loop = await session.submit('echo begun; while :; do :; done');
  for await (const { text } of loop.output()) if (text.includes('begun')) break;
  return loop;
}

describe('a session beside busy ones', () => {
  test(`runs a short command within 100 ms while ${BUSY} others loop without end`, async () => {
    const quiet = await stack.fleet.session('quiet');
    await quiet.run('true');
    const loops = await Promise.all(Array.from({ length: BUSY }, (_, n) => startLoop(n)));
    const took: number[] = [];
    for (let n = 0; n < COMMANDS; n += 1) {
      const from = performance.now();
      expect((await quiet.run('echo hi')).stdout).toBe('hi\n');
      took.push(performance.now() - from);
    }
    await Promise.all(loops.map((loop) => loop.cancel()));
    took.sort((a, b) => a - b);
    const [median = 0, p95 = 0] = [took[50], took[95]];
    console.info(`beside ${BUSY} loops: \`echo hi\` took ${median.toFixed(1)} ms (p95 ${p95.toFixed(1)} ms)`);
    expect(p95).toBeLessThanOrEqual(100);
  }, 120_000);
});
