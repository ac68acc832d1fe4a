import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ slots: 40 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

describe('a session', () => {
  // cloudflare/sandbox-sdk#333: a create right after a destroy fails with “already exists”.
  test('can be opened again once close resolves, and waits before (cloudflare/sandbox-sdk#333)', async () => {
    const before = await stack.fleet.session('cf-333', { env: { RUN: '1' } });
    await before.run('touch /workspace/old');
    await before.close();
    const after = await stack.fleet.session('cf-333', { env: { RUN: '2' }, shutdownCommands: ['sleep 1'] });
    expect(await after.run('echo $RUN; ls /workspace')).toEqual(expectedResult('cf-333', { stdout: '2\n' }));
    // Another process opens the session with a third spec while it closes.
    const other = await stack.connect();
    const closing = after.close();
    await until(
      () => after.info(),
      ({ state }) => state === 'closing',
    );
    const third = await other.session('cf-333', { env: { RUN: '3' } });
    expect((await third.run('echo $RUN')).stdout).toBe('3\n');
    await closing;
    await using inspect = inspectFleet(stack);
    expect(await inspect.containers('cf-333')).toHaveLength(1);
  });

  // cloudflare/sandbox-sdk#333: one id gets two sandboxes.
  test('has one shell for twenty callers that open it at once (cloudflare/sandbox-sdk#333)', async () => {
    const callers = await Promise.all(Array.from({ length: 20 }, () => stack.connect()));
    const sessions = await Promise.all(callers.map((fleet) => fleet.session('cf-333-shared')));
    await Promise.all(sessions.map((session) => session.run('count=$((count + 1))')));
    expect((await sessions[0]?.run('echo $count'))?.stdout).toBe('20\n');
    await using inspect = inspectFleet(stack);
    expect(await inspect.containers('cf-333-shared')).toHaveLength(1);
  });

  // SWE-ReX: one server runs one command at a time, so sessions wait for each other.
  test('runs `echo` while another session sleeps (SWE-ReX)', async () => {
    const [sleeper, other] = await Promise.all([stack.fleet.session('sleeps'), stack.fleet.session('echoes')]);
    await Promise.all([sleeper.run('true'), other.run('true')]);
    const asleep = await sleeper.submit('sleep 4321');
    const took: number[] = [];
    for (let index = 0; index < 5; index += 1) {
      const from = performance.now();
      expect((await other.run('echo hi')).stdout).toBe('hi\n');
      took.push(performance.now() - from);
    }
    expect(Math.max(...took)).toBeLessThan(2_000);
    expect((await sleeper.info()).runningCommandId).toBe(asleep.id);
    await asleep.cancel();
    expect((await asleep.result()).outcome).toBe('cancellation');
  });
});
