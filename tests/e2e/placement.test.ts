import type { Command, SessionInfo } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

const small = { limits: { memoryBytes: 64 * 2 ** 20 } };

describe('three workers', () => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ workers: 3, slots: 24 });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  test('share 60 sessions, each of which is on exactly one of them', async () => {
    const ids = Array.from({ length: 60 }, (_, index) => `shared-${index}`);
    const sessions = await Promise.all(ids.map((id) => stack.fleet.session(id, small)));
    const hosts = await Promise.all(
      sessions.map(async (session) => {
        const results = await Promise.all([1, 2, 3].map((n) => session.run(`n=$((n + ${n})); hostname; echo $n`)));
        expect(results.map(({ outcome, error, shell }) => ({ outcome, error, shell }))).toEqual(
          Array(3).fill({ outcome: 'success', error: undefined, shell: { state: 'kept', epoch: 1 } }),
        );
        expect(results.map(({ stdout }) => stdout.split('\n')[1])).toEqual(['1', '3', '6']);
        const containers = new Set(results.map(({ stdout }) => stdout.split('\n')[0]));
        const used = new Set(results.map(({ hostId }) => hostId));
        return { containers, used };
      }),
    );
    expect(hosts.map(({ containers, used }) => [containers.size, used.size])).toEqual(Array(60).fill([1, 1]));
    expect(new Set(hosts.flatMap(({ containers }) => [...containers])).size).toBe(60);
    expect(new Set(hosts.flatMap(({ used }) => [...used]))).toEqual(new Set(['h1', 'h2', 'h3']));
    await until(
      () => stack.fleet.hosts(),
      (infos) => infos.reduce((open, { slots, free }) => open + slots - free, 0) === 60,
    );
  });
});

describe('one slot', () => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ slots: 1 });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  test('makes a session wait while it is taken, and run when it is freed', async () => {
    const holder = await stack.fleet.session('holder', small);
    await holder.run('true');
    const waiting = await Promise.all(['first', 'second'].map((name) => stack.fleet.session(`waits-${name}`, small)));
    const commands: Command[] = [];
    for (const session of waiting) commands.push(await session.submit(`echo ${session.id}`));
    const hosts = await until(
      () => stack.fleet.hosts(),
      ([host]) => host?.free === 0,
    );
    const expectInfo = (own: Partial<SessionInfo>) => ({
      hostId: null,
      epoch: 0,
      background: [],
      labels: {},
      createdAt: expect.any(String),
      lastActiveAt: expect.any(String),
      needs: { policy: 'docker' },
      ...own,
    });
    expect(await Promise.all(waiting.map((session) => session.info()))).toEqual([
      expectInfo({ id: 'waits-first', state: 'queued', queuedCommands: 1, position: 1, queueLength: 2 }),
      expectInfo({ id: 'waits-second', state: 'queued', queuedCommands: 1, position: 2, queueLength: 2 }),
    ]);
    expect(hosts).toEqual([
      {
        id: 'h1',
        state: 'up',
        slots: 1,
        free: 0,
        sessions: 1,
        running: expect.any(Number),
        commandsPerSecond: expect.any(Number),
        policies: ['docker'],
        version: expect.any(String),
        seenAt: expect.any(String),
        configuration: 0,
        gate: expect.objectContaining({ reason: null }),
      },
    ]);
    // The session that holds the slot goes on in the meantime.
    expect(await holder.run('echo still')).toEqual(expectedResult('holder', { stdout: 'still\n' }));
    await holder.close();
    expect(await commands[0]?.result()).toEqual(expectedResult('waits-first', { stdout: 'waits-first\n' }));
    // The wait is estimated from the time for which the holder had the slot.
    const expected = await until(
      () => waiting[1]?.info(),
      (info) => (info?.etaMs ?? 0) > 0,
    );
    expect(expected).toEqual(
      expectInfo({
        id: 'waits-second',
        state: 'queued',
        queuedCommands: 1,
        position: 1,
        queueLength: 1,
        etaMs: expect.toSatisfy((ms) => ms < 60_000) as never,
      }),
    );
    await waiting[0]?.close();
    expect(await commands[1]?.result()).toEqual(expectedResult('waits-second', { stdout: 'waits-second\n' }));
  });

  test('goes to the smaller priority number first; cancelled and closed sessions leave the queue', async () => {
    const holder = await stack.fleet.session('holds-again', small);
    // The earlier holder of the slot has ended.
    for await (const { id } of stack.fleet.sessions())
      if (id !== holder.id) await (await stack.fleet.session(id)).close();
    await holder.run('true');
    const submit = async (id: string, priority: number) =>
      (await stack.fleet.session(id, { ...small, priority })).submit('cat /proc/uptime');
    const [late, cancelled, closed, soon] = [
      await submit('late', 9),
      await submit('gives-up', 1),
      await submit('is-closed', 1),
      await submit('soon', 2),
    ];
    expect(await cancelled.cancel('not needed')).toBe(true);
    await (await stack.fleet.session('is-closed', { ...small, priority: 1 })).close();
    const ended = {
      exitCode: null,
      reason: 'cancelled' as const,
      outcome: 'cancellation' as const,
      hostId: null,
      shell: { state: 'kept' as const, epoch: 0 },
    };
    expect(await cancelled.result()).toEqual(expectedResult('gives-up', { ...ended, cancelReason: 'not needed' }));
    expect(await closed.result()).toEqual(expectedResult('is-closed', { ...ended, cancelReason: 'session closed' }));
    await holder.close();
    expect((await soon.result()).outcome).toBe('success');
    expect((await (await stack.fleet.session('late')).info()).state).toBe('queued');
    await (await stack.fleet.session('soon')).close();
    expect((await late.result()).outcome).toBe('success');
    await until(
      async () => (await stack.fleet.hosts()).map(({ free }) => free),
      ([free]) => free === 0,
    );
  });

  test('ends a command that has not started by its deadline as a timeout', async () => {
    const late = await stack.fleet.session('late');
    await late.run('true');
    const session = await stack.fleet.session('too-late', small);
    const result = await session.run('echo never', { startDeadlineMs: 300 });
    expect(result).toEqual(
      expectedResult('too-late', {
        outcome: 'timeout',
        exitCode: null,
        reason: 'not-started',
        hostId: null,
        shell: { state: 'kept', epoch: 0 },
      }),
    );
  });
});
