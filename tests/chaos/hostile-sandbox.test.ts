import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Session } from '@shellfleet/client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { residentBytes } from '../support/resident-bytes.ts';
import type { TestFleet, TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Invariant 8: memory is bounded for any output of a command. User code in a sandbox can print anything and send
// anything to the worker's socket: its own session and the others go on.

const MIB = 1 << 20;
const FLOOD_BYTES = Number(process.env.SHELLFLEET_FLOOD_MB ?? 100) * MIB;
const floodsTheSocket = fileURLToPath(new URL('../fixtures/floods-the-socket.py', import.meta.url));

let stack: TestFleet;
let worker: TestWorker;
let inspect: FleetInspector;

beforeEach(async () => {
  ({ stack, worker, inspect } = await startInspectedFleet());
});
afterEach(() => endInspectedFleet(stack, inspect));

/** Runs small commands in a session until the signal aborts. Returns their durations in ms, in ascending order. */
async function answerTimes(session: Session, stop: AbortSignal): Promise<number[]> {
  const took: number[] = [];
  while (!stop.aborted) {
    const from = performance.now();
    expect((await session.run('echo here')).stdout).toBe('here\n');
    took.push(performance.now() - from);
  }
  return took.sort((a, b) => a - b);
}

describe('a command that prints without end', () => {
  test('leaves its worker’s memory bounded, and other sessions answer', async () => {
    const beside = await stack.fleet.session('beside');
    await beside.run('true');
    const session = await stack.fleet.session('flood', { limits: { cpus: 1 } });
    await session.run('true');
    const before = await residentBytes(worker.pid);
    const ended = new AbortController();
    const times = answerTimes(beside, ended.signal);
    let most = before;
    const watching = setInterval(() => {
      void residentBytes(worker.pid).then((bytes) => {
        most = Math.max(most, bytes);
      });
    }, 50);
    const result = await session.run(`yes | head -c ${FLOOD_BYTES}`, { timeoutMs: 100_000 });
    clearInterval(watching);
    ended.abort();
    const took = await times;
    const median = took[Math.floor(took.length / 2)] ?? Number.NaN;
    console.info(
      `${FLOOD_BYTES / MIB} MiB in ${result.timings.runMs} ms; the worker grew from ${Math.round(before / MIB)} to ${Math.round(most / MIB)} MiB; ` +
        `beside it ${took.length} answers, median ${median.toFixed(1)} ms, longest ${took.at(-1)?.toFixed(1)} ms`,
    );
    expect(result).toMatchObject({ outcome: 'success', totals: { stdoutBytes: FLOOD_BYTES } });
    expect(most).toBeLessThan(before + 200 * MIB);
    expect(took.length).toBeGreaterThan(3);
    expect(took.at(-1)).toBeLessThan(5_000);
    expect(await inspect.broken('flood')).toEqual([]);
    expect(await inspect.broken('beside')).toEqual([]);
  });
});

describe('junk, forged messages, floods and half frames at the worker’s socket', () => {
  test('from a sandbox do not keep any session from being adopted', async () => {
    const beside = await stack.fleet.session('beside');
    await beside.run('kept=beside');
    const session = await stack.fleet.session('hostile', { limits: { cpus: 0.5 } });
    await session.files.write('/tmp/floods.py', await readFile(floodsTheSocket));
    await session.run('kept=hostile; for i in 1 2 3; do python3 /tmp/floods.py > /dev/null 2>&1 & done');
    const connected = async () => {
      const { stdout } = await session.run('cat /tmp/connected 2> /dev/null; true');
      return Number(stdout);
    };
    for (let restart = 1; restart <= 3; restart += 1) {
      await worker.kill();
      await worker.start();
      expect(await beside.run('echo $kept')).toMatchObject({ stdout: 'beside\n', shell: { state: 'kept' } });
      expect(await session.run('echo $kept')).toMatchObject({ stdout: 'hostile\n', shell: { state: 'kept' } });
    }
    await until(connected, (count) => count > 0);
    expect(await inspect.broken('hostile')).toEqual([]);
  });
});
