import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FleetInspector, inspectFleet } from '../support/inspect-fleet.ts';
import { idsOf } from '../support/invariants.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: producer or client dies: what was accepted runs; its result and output are there to be read later by id.
// No accepted command waits for ever, between whichever two steps its producer died.

const submitsAndDies = fileURLToPath(new URL('../fixtures/submits-and-dies.ts', import.meta.url));
/** Upkeep looks every two seconds; a session then has to be opened. */
const FOUND_WITHIN_MS = 20_000;
const MOST_CALLS = 60;
const AT_ONCE = 3;

let stack: TestFleet;
let inspect: FleetInspector;

beforeAll(async () => {
  stack = await startFleet({ slots: MOST_CALLS });
  inspect = inspectFleet(stack);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  expect(await inspect.containers()).toEqual([]);
  await inspect[Symbol.asyncDispose]();
});

interface Death {
  sessionId: string;
  signal: string | null;
  /** Empty when it died before it could say so. */
  commandId: string;
  /** that it had made by then */
  calls: number;
}

/** A real process of its own. */
function submitAndDie(sessionId: string, when: 'before' | 'after', point: number): Promise<Death> {
  const flags = ['--conditions=@shellfleet/source', '--no-warnings'];
  const args = [...flags, submitsAndDies, stack.redisUrl, stack.namespace, stack.sealKey, sessionId, when, `${point}`];
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout) => {
      const [commandId = '', calls = '0'] = stdout.trim().split(' ');
      resolve({ sessionId, signal: error?.signal ?? null, commandId, calls: Number(calls) });
    });
  });
}

describe('A producer killed with SIGKILL', () => {
  test.each(['before', 'after'] as const)(
    '%s any call of its first submit leaves no command that waits for ever',
    async (when) => {
      const deaths: Death[] = [];
      for (let point = 0, over = false; !over && point < MOST_CALLS; point += AT_ONCE) {
        const points = Array.from({ length: AT_ONCE }, (_, index) => point + index);
        const batch = await Promise.all(points.map((at) => submitAndDie(`${when}-${at}`, when, at)));
        for (const [index, death] of batch.entries()) {
          // One that lived through all of its calls: there are no more points.
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

  test('after a submit has its result and output read by another process, by id', async () => {
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
