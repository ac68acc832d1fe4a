import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Commands and sessions whose shell has not started yet.

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ slots: 40 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const cancelled = { outcome: 'cancellation', exitCode: null, reason: 'cancelled', hostId: null } as const;
const unstarted = { shell: { state: 'kept', epoch: 0 } } as const;

describe('a session', () => {
  test('skips a command that is cancelled while the session starts, and runs later commands', async () => {
    const session = await stack.fleet.session('starts-cancel', { startupCommands: ['sleep 1; echo up > /tmp/up'] });
    const first = await session.submit('echo ran > /tmp/ran');
    const second = await session.submit('cat /tmp/up; ls /tmp/ran 2>/dev/null | wc -l');
    await until(
      async () => (await session.info()).state,
      (state) => state === 'starting',
    );
    expect(await first.cancel()).toBe(true);
    expect(await first.result()).toEqual(
      expectedResult('starts-cancel', { ...cancelled, cancelReason: 'cancelled by its caller', ...unstarted }),
    );
    expect(await second.result()).toEqual(expectedResult('starts-cancel', { stdout: 'up\n0\n' }));
  });

  test('ends its commands, sandbox and slot when it is closed while it starts', async () => {
    const session = await stack.fleet.session('starts-close', {
      startupCommands: ['sleep 4321'],
      startupTimeoutMs: 60_000,
    });
    const commands = [await session.submit('echo never'), await session.submit('echo never')];
    await using inspector = inspectFleet(stack);
    await until(
      () => inspector.containers('starts-close'),
      ([container]) => container?.state === 'running',
    );
    const began = performance.now();
    await session.close();
    expect(performance.now() - began).toBeLessThan(10_000);
    for (const command of commands)
      expect(await command.result()).toEqual(
        expectedResult('starts-close', { ...cancelled, cancelReason: 'session closed', ...unstarted }),
      );
    expect(await inspector.containers('starts-close')).toEqual([]);
  });

  // S0-53, S1-14, S2-13
  test('begins the time limit of a command with its first byte, not before', async () => {
    const session = await stack.fleet.session('starts-slowly', { startupCommands: ['sleep 1'] });
    const results = await Promise.all([
      session.run('sleep 0.5', { timeoutMs: 10_000 }),
      session.run('sleep 0.1; echo in time', { timeoutMs: 1_000 }),
    ]);
    expect(results[1]).toEqual(expectedResult('starts-slowly', { stdout: 'in time\n' }));
    const [first, second] = results.map(({ timings }) => timings);
    expect(first?.startMs).toBeGreaterThanOrEqual(1_000);
    expect(first?.runMs).toBeGreaterThanOrEqual(500);
    expect(second?.queuedMs).toBeGreaterThanOrEqual(500);
    for (const timings of [first, second])
      expect(timings?.totalMs).toBe((timings?.queuedMs ?? 0) + (timings?.startMs ?? 0) + (timings?.runMs ?? 0));
  });

  // S0-38, S0-54
  test('leaves stream and records at its end, and no container, slot or job', async () => {
    const ids = ['ends-a', 'ends-b', 'ends-c'];
    const sessions = await Promise.all(ids.map((id) => stack.fleet.session(id)));
    await Promise.all(sessions.map((session) => session.run('sleep 4321 & echo on')));
    await using inspector = inspectFleet(stack);
    expect((await Promise.all(ids.map((id) => inspector.containers(id)))).map(({ length }) => length)).toEqual([
      1, 1, 1,
    ]);
    await Promise.all(sessions.map((session) => session.close()));
    expect(await Promise.all(ids.map((id) => inspector.containers(id)))).toEqual([[], [], []]);
    const jobs = () => inspector.redis.keys(`${stack.keyspace}:{x0}:sessions-docker:s~default~ends-*`);
    await until(jobs, (keys) => keys.length === 0);
    for (const id of ids) expect(await inspector.broken(id)).toEqual([]);
  });

  test('is opened once, in one container, by two clients at once', async () => {
    const producers = await Promise.all(Array.from({ length: 4 }, () => stack.connect()));
    const spec = { env: { FROM: 'spec' } };
    const results = await Promise.all(
      producers.map(async (producer) => (await producer.session('opened-at-once', spec)).run('echo $FROM; hostname')),
    );
    expect(new Set(results.map(({ stdout }) => stdout)).size).toBe(1);
    expect(new Set(results.map(({ shell }) => JSON.stringify(shell)))).toEqual(
      new Set([JSON.stringify({ state: 'kept', epoch: 1 })]),
    );
  });
});
