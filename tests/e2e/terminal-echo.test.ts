// The time between a key at a terminal of a session and its echo.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

describe.each(['socket', 'attach'] as const)('a terminal over %s', (transport) => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ transport });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  test('echoes a key fast enough to type', async () => {
    const session = await stack.fleet.session('quick');
    await using terminal = await session.attach();
    const output = terminal.output();
    const reads = async (text: string) => {
      let seen = '';
      while (!seen.includes(text)) seen += Buffer.from((await output.next()).value ?? '').toString();
    };
    await terminal.write('stty raw -echo; echo re""ady; cat\n');
    await reads('ready');
    const took: number[] = [];
    for (let key = 0; key < 101; key += 1) {
      const from = performance.now();
      await terminal.write('#');
      await reads('#');
      took.push(performance.now() - from);
    }
    took.sort((a, b) => a - b);
    const [median = 0, p95 = 0] = [took[50], took[95]];
    console.info(`over ${transport}: the echo of a key took ${median.toFixed(1)} ms (p95 ${p95.toFixed(1)} ms)`);
    // Measured on a quiet machine: 2.5 ms and 5 ms.
    expect(median).toBeLessThan(25);
    expect(p95).toBeLessThan(75);
  });
});
