import { readFile } from 'node:fs/promises';
import type { Command, OutputChunk } from '@shellfleet/client';
import { sessionKeys } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { p95, timesOf } from '../support/flood-figures.ts';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

describe('late output', () => {
  test('slows no other command and fills nothing when a background process floods', async () => {
    await using stack = await startFleet();
    await using inspector = inspectFleet(stack);
    const streamBytes = 1_000_000;
    const flooded = await stack.fleet.session('flooded', { output: { streamBytes } });
    const other = await stack.fleet.session('quiet');
    await Promise.all([flooded.run('true'), other.run('true')]);
    const before = await highWaterMark(stack);
    const command = await flooded.submit(
      'for i in 1 2 3 4; do (until [ -e go ]; do sleep 0.02; done; exec yes flood) & done',
    );
    await command.result();
    await flooded.run('touch go');
    // The flood is throttled to 1 MiB/s, so it is over the budget soon.
    await until(
      () => readNow(command),
      (chunks) => carried(chunks) > streamBytes - 100_000,
    );
    const quiet: number[] = [];
    const elsewhere: number[] = [];
    const here: number[] = [];
    // The three measurements alternate, so that other work on the machine slows down all of them alike.
    for (let round = 0; round < 5; round += 1) {
      await flooded.run('kill -STOP %1 %2 %3 %4');
      quiet.push(...(await timesOf(other, 40)));
      await flooded.run('kill -CONT %1 %2 %3 %4');
      elsewhere.push(...(await timesOf(other, 40)));
      here.push(...(await timesOf(flooded, 40)));
    }
    const [alone, beside, within] = [quiet, elsewhere, here].map((times) => p95(times).toFixed(1));
    console.info(
      `p95 of \`true\`: ${alone} ms alone, ${beside} ms beside a background flood, ${within} ms in its session`,
    );
    expect(p95(elsewhere)).toBeLessThan(2 * p95(quiet) + 5);
    expect(p95(here)).toBeLessThan(2 * p95(quiet) + 5);
    expect(carried(await readNow(command))).toBeLessThanOrEqual(streamBytes);
    const { stream } = sessionKeys(stack.keyspace, 'default', 'flooded');
    const size = await inspector.redis.memory('USAGE', stream, 'SAMPLES', 0);
    expect(size).toBeLessThan(1.5 * streamBytes);
    expect((await highWaterMark(stack)) - before).toBeLessThan(64 << 20);
    await flooded.run('kill %1 %2 %3 %4; wait', { timeoutMs: 10_000 });
    const chunks = await until(
      () => readNow(command),
      (all) => missing(all) > 0,
    );
    expect(carried(chunks) + missing(chunks)).toBeGreaterThan(streamBytes);
  });
});

const missing = (chunks: OutputChunk[]) => chunks.reduce((sum, { omittedBytes = 0 }) => sum + omittedBytes, 0);
const carried = (chunks: OutputChunk[]) => chunks.reduce((sum, { data }) => sum + data.byteLength, 0);
const readNow = (command: Command) => Array.fromAsync(command.output({ follow: false }));

async function highWaterMark({ workers }: TestFleet): Promise<number> {
  const status = await readFile(`/proc/${workers[0]?.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}
