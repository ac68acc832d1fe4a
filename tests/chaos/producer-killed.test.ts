import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { idsOf } from '../support/invariants.ts';
import { bundleInto } from '../support/programs.ts';
import { slotsFor } from '../support/slots-for.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: when a client dies, accepted commands run, and their Results and output can be read later by id. No accepted
// command waits for ever, between whichever two steps the client died.

/** Time in which upkeep, which runs every two seconds, finds the command and a host opens its session. */
const FOUND_WITHIN_MS = 20_000;
const MOST_CALLS = 60;
const AT_ONCE = 3;

let stack: TestFleet;
let inspect: FleetInspector;
let directory: string;
/** Path of the program that submits a command and dies. */
let submitsAndDies: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-programs-'));
  ({ submitsAndDies } = await bundleInto(directory, { submitsAndDies: 'tests/fixtures/submits-and-dies.ts' }));
  ({ stack, inspect } = await startInspectedFleet({ slots: slotsFor(MOST_CALLS) }));
});
afterAll(async () => {
  await endInspectedFleet(stack, inspect);
  await rm(directory, { recursive: true, force: true });
});

interface Death {
  sessionId: string;
  signal: string | null;
  /** Id of the command; empty when the client died before it had printed the id. */
  commandId: string;
  /** Number of calls to Redis that the client had made when it died. */
  calls: number;
}

/** Runs a client as a real process, which submits a command and dies. */
function submitAndDie(sessionId: string, when: 'before' | 'after', point: number): Promise<Death> {
  const args = [submitsAndDies, stack.redisUrl, stack.namespace, stack.sealKey, sessionId, when, `${point}`];
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout) => {
      const [commandId = '', calls = '0'] = stdout.trim().split(' ');
      resolve({ sessionId, signal: error?.signal ?? null, commandId, calls: Number(calls) });
    });
  });
}

describe('a client killed with SIGKILL', () => {
  test.each(['before', 'after'] as const)(
    'leaves no command waiting for ever when killed %s any call of its submit',
    async (when) => {
      const deaths: Death[] = [];
      for (let point = 0, over = false; !over && point < MOST_CALLS; point += AT_ONCE) {
        const points = Array.from({ length: AT_ONCE }, (_, index) => point + index);
        const batch = await Promise.all(points.map((at) => submitAndDie(`${when}-${at}`, when, at)));
        for (const [index, death] of batch.entries()) {
          // The client survived all of its calls, so there are no more points to die at.
          const lived = death.commandId !== '' && point + index >= death.calls;
          if (!lived) expect(death.signal).toBe('SIGKILL');
          over ||= lived;
        }
        deaths.push(...batch);
      }
      console.info(`killed at up to ${deaths.length} points ${when} a call`);
      expect(deaths.length).toBeGreaterThan(3);
      let accepted = 0;
      for (const { sessionId } of deaths) {
        await until(
          () => inspect.broken(sessionId),
          (problems) => problems.length === 0,
          FOUND_WITHIN_MS,
        );
        accepted += idsOf(await inspect.events(sessionId), 'command.completed').length;
      }
      expect(accepted).toBeGreaterThan(1);
    },
  );

  test('leaves result and output for another process, by the command’s id', async () => {
    const { commandId, signal } = await submitAndDie('orphan', 'after', MOST_CALLS * 10);
    expect(signal).toBe('SIGKILL');
    const other = await stack.connect();
    const command = await other.command(commandId);
    expect(await command.result()).toMatchObject({ commandId, outcome: 'success', stdout: 'done\n' });
    let output = '';
    for await (const { text } of command.output()) output += text;
    expect(output).toBe('done\n');
    expect(await inspect.broken('orphan', [commandId])).toEqual([]);
  });
});
