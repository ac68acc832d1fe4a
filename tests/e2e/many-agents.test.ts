import { setTimeout as delay } from 'node:timers/promises';
import type { Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { percentile } from '../bench/measure/spread.ts';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { residentBytes } from '../support/resident-bytes.ts';
import { slotsFor } from '../support/slots-for.ts';
import type { TestFleet, TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Agents whose sessions are all open on one host while they mostly think.
//
// More of them: SHELLFLEET_TEST_AGENTS=300 SHELLFLEET_TEST_THINK_SECONDS=20 SHELLFLEET_TEST_MINUTES=5 vitest run
// --project e2e tests/e2e/many-agents.test.ts

const { SHELLFLEET_TEST_AGENTS, SHELLFLEET_TEST_THINK_SECONDS, SHELLFLEET_TEST_MINUTES } = process.env;
const LONG = SHELLFLEET_TEST_AGENTS !== undefined;
const AGENTS = Number(SHELLFLEET_TEST_AGENTS ?? 12);
const SLOTS = slotsFor(AGENTS);
const THINK_MS = 1_000 * Number(SHELLFLEET_TEST_THINK_SECONDS ?? 1);
const FOR_MS = LONG ? 60_000 * Number(SHELLFLEET_TEST_MINUTES ?? 3) : 3_000;
const MIB = 2 ** 20;

let stack: TestFleet;
let worker: TestWorker;
let inspect: FleetInspector;

beforeAll(async () => {
  ({ stack, worker, inspect } = await startInspectedFleet({
    slots: SLOTS,
    env: { SHELLFLEET_LOG_LEVEL: 'info' },
  }));
});
afterAll(() => endInspectedFleet(stack, inspect), 900_000);

/** Runs a command now and then, and pushes the time (ms) from each submit to its start. */
async function work(session: Session, phase: number, until: number, starts: number[]): Promise<string[]> {
  const wrong: string[] = [];
  await delay(THINK_MS * phase);
  for (let turn = 1; performance.now() < until; turn += 1) {
    const from = performance.now();
    const command = await session.submit('n=$((n + 1)); echo $n');
    const accepted = performance.now();
    const { outcome, stdout, timings } = await command.result();
    starts.push(accepted - from + timings.queuedMs + timings.startMs);
    if (stdout !== `${turn}\n`) wrong.push(`${command.id}: ${outcome}, ${stdout}`);
    await delay(Math.max(0, from + THINK_MS - performance.now()));
  }
  return wrong;
}

describe(`${AGENTS} agents with an open session each on one host`, () => {
  test('are answered at once, lose no command and leave the worker small', async () => {
    const openedFrom = performance.now();
    const opened = await Promise.all(
      Array.from({ length: AGENTS }, async (_, index) => {
        const session = await stack.fleet.session(`agent-${index}`);
        const result = await session.run('n=0');
        expect(result).toMatchObject({ outcome: 'success' });
        return { session, ms: result.timings.totalMs };
      }),
    );
    const openMs = performance.now() - openedFrom;

    let mostBytes = 0;
    const watch = setInterval(async () => {
      mostBytes = Math.max(mostBytes, await residentBytes(worker.pid));
    }, 250);
    const starts: number[] = [];
    const end = performance.now() + FOR_MS;
    const wrong = await Promise.all(opened.map(({ session }, index) => work(session, index / AGENTS, end, starts)));
    clearInterval(watch);

    const closedFrom = performance.now();
    await Promise.all(opened.map(({ session }) => session.close()));
    await until(
      () => stack.fleet.hosts(),
      ([host]) => host?.free === SLOTS,
      600_000,
    );
    const closeMs = performance.now() - closedFrom;
    const times = opened.map(({ ms }) => ms);
    const figures = {
      ...{ agents: AGENTS, thinkMs: THINK_MS, commands: starts.length, lost: wrong.flat().length },
      startMs: { p50: percentile(starts, 0.5), p95: percentile(starts, 0.95), p99: percentile(starts, 0.99) },
      open: { ms: openMs, p50: percentile(times, 0.5), p95: percentile(times, 0.95) },
      ...{ closeMs, workerMib: mostBytes / MIB },
    };
    process.stdout.write(`${JSON.stringify(figures)}\n`);
    expect(wrong.flat()).toEqual([]);
    expect(mostBytes).toBeLessThanOrEqual(400 * MIB);
    if (LONG) expect(figures.startMs.p95).toBeLessThanOrEqual(250);
  }, 3_600_000);
});
