import { readFile } from 'node:fs/promises';
import type { Command, OutputChunk, Session } from '@shellfleet/client';
import { sessionKeys } from '@shellfleet/protocol';
import { expect, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

test('a flood from the background slows no command, here or elsewhere, and fills nothing', async () => {
  await using stack = await startFleet();
  await using inspector = inspectFleet(stack);
  const streamBytes = 1_000_000;
  const flooded = await stack.fleet.session('flooded', { output: { streamBytes } });
  const other = await stack.fleet.session('quiet');
  await Promise.all([flooded.run('true'), other.run('true')]);
  const quiet = await bestP95(other);
  const before = await highWaterMark(stack);
  const command = await flooded.submit(
    'for i in 1 2 3 4; do (until [ -e go ]; do sleep 0.02; done; exec yes flood) & done',
  );
  await command.result();
  await flooded.run('touch go');
  // The flood is held back at 1 MiB/s: over the budget soon, and it goes on.
  await until(
    () => readNow(command),
    (chunks) => carried(chunks) > streamBytes - 100_000,
  );
  const [elsewhere, here] = [await bestP95(other), await bestP95(flooded)];
  const [alone, beside, within] = [quiet, elsewhere, here].map((ms) => ms.toFixed(1));
  console.info(
    `p95 of \`true\`: ${alone} ms alone, ${beside} ms beside a background flood, ${within} ms in its session`,
  );
  expect(elsewhere).toBeLessThan(2 * quiet + 20);
  expect(here).toBeLessThan(2 * quiet + 20);
  expect(carried(await readNow(command))).toBeLessThanOrEqual(streamBytes);
  const { stream } = sessionKeys(stack.namespace, 'default', 'flooded');
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

/** The best of three rounds, since other work of the machine may slow a round down. */
async function bestP95(session: Session): Promise<number> {
  const rounds = [await times(session, 60), await times(session, 60), await times(session, 60)];
  return Math.min(...rounds.map(p95));
}

/** Runs `count` commands one after the other and returns the time that each took, ms. */
async function times(session: Session, count: number): Promise<number[]> {
  const all: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const from = performance.now();
    await session.run('true');
    all.push(performance.now() - from);
  }
  return all;
}

const missing = (chunks: OutputChunk[]) => chunks.reduce((sum, { omittedBytes = 0 }) => sum + omittedBytes, 0);
const carried = (chunks: OutputChunk[]) => chunks.reduce((sum, { data }) => sum + data.byteLength, 0);
const readNow = (command: Command) => Array.fromAsync(command.output({ follow: false }));
const p95 = (all: number[]) => all.toSorted((a, b) => a - b)[Math.floor(all.length * 0.95)] as number;

async function highWaterMark({ workers }: TestFleet): Promise<number> {
  const status = await readFile(`/proc/${workers[0]?.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}
