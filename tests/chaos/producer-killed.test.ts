import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { idsOf } from '../support/invariants.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: when a producer dies, accepted commands run, and their results and output can be read later by id.
// No accepted command waits for ever, between whichever two steps its producer died.

const submitsAndDies = fileURLToPath(new URL('../fixtures/submits-and-dies.ts', import.meta.url));
/** Upkeep runs every two seconds; a session then has to be opened. */
const FOUND_WITHIN_MS = 20_000;
const MOST_CALLS = 60;
const AT_ONCE = 3;

let stack: TestFleet;
let inspect: FleetInspector;

beforeAll(async () => {
  ({ stack, inspect } = await startInspectedFleet({ slots: MOST_CALLS }));
});
afterAll(() => endInspectedFleet(stack, inspect));

interface Death {
  sessionId: string;
  signal: string | null;
  /** Empty when it died before it had printed it. */
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

describe('a client killed with SIGKILL', () => {
  test.each(['before', 'after'] as const)(
    'leaves no command waiting for ever when killed %s any call of its submit',
    async (when) => {
      const deaths: Death[] = [];
      for (let point = 0, over = false; !over && point < MOST_CALLS; point += AT_ONCE) {
        const points = Array.from({ length: AT_ONCE }, (_, index) => point + index);
        const batch = await Promise.all(points.map((at) => submitAndDie(`${when}-${at}`, when, at)));
        for (const [index, death] of batch.entries()) {
          // It survived all of its calls: there are no more points.
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
