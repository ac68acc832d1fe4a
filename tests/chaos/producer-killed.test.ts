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
  /** What it had said: the id of its command. */
  said: string;
}

/** A real process of its own. */
function submitAndDie(sessionId: string, when: 'before' | 'after', point: number): Promise<Death> {
  const flags = ['--conditions=@shellfleet/source', '--no-warnings'];
  const args = [...flags, submitsAndDies, stack.redisUrl, stack.namespace, stack.sealKey, sessionId, when, `${point}`];
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout) => {
      resolve({ sessionId, signal: error?.signal ?? null, said: stdout.trim() });
    });
  });
}

describe('A producer killed with SIGKILL', () => {
  test.each(['before', 'after'] as const)(
    '%s any call of its first submit leaves no command that waits for ever',
    async (when) => {
      const deaths: Death[] = [];
      for (let point = 0; point < MOST_CALLS; point += 1) {
        const death = await submitAndDie(`${when}-${point}`, when, point);
        deaths.push(death);
        // It lived to say that it had submitted: there are no more points.
        if (death.said !== '') break;
        expect(death.signal).toBe('SIGKILL');
      }
      console.info(`killed at ${deaths.length - 1} points ${when} a call`);
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
    const { said, signal } = await submitAndDie('orphan', 'after', MOST_CALLS * 10);
    expect(signal).toBe('SIGKILL');
    const other = await stack.connect();
    const command = await other.command(said);
    expect(await command.result()).toMatchObject({ commandId: said, outcome: 'success', stdout: 'done\n' });
    let output = '';
    for await (const { text } of command.output()) output += text;
    expect(output).toBe('done\n');
    expect(await inspect.broken('orphan', [said])).toEqual([]);
  });
});
