import type { Command } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: when a container runs out of memory, is killed or is removed, the terminal event with the reason follows
// within 2 s, and the next Result reports a new shell.

const REPORTED_WITHIN_MS = 2_000;

describe.each(['socket', 'attach'] as const)('a container over %s', (transport) => {
  let stack: TestFleet;
  let inspect: FleetInspector;

  beforeAll(async () => {
    ({ stack, inspect } = await startInspectedFleet({ transport }));
  });
  afterAll(() => endInspectedFleet(stack, inspect));

  const endOf = async (command: Command) => {
    const from = performance.now();
    const result = await command.result();
    return { result, tookMs: performance.now() - from };
  };

  test.each([
    ['killed', { force: false, reason: 'killed' }],
    ['removed', { force: true, reason: 'removed' }],
  ])('ends its command within 2 s when %s; the next Result reports a new shell', async (how, { force, reason }) => {
    const session = await stack.fleet.session(how);
    await session.run('before=1');
    const command = await session.submit('echo partial; sleep 100', { timeoutMs: 60_000 });
    const queued = await session.submit('echo "[$before]"');
    await inspect.untilOutput(how);
    const container = await inspect.container(how);
    await (force ? container.remove({ force }) : container.kill());
    const { result, tookMs } = await endOf(command);
    console.info(`over ${transport}: ${how}, reported after ${Math.round(tookMs)} ms`);
    expect(result).toMatchObject({
      outcome: 'error',
      reason: 'container-removed',
      stdout: 'partial\n',
      error: { code: 'CONTAINER_LOST', context: { reason } },
      shell: { state: 'lost' },
    });
    expect(tookMs).toBeLessThan(REPORTED_WITHIN_MS);
    expect(await queued.result()).toMatchObject({ stdout: '[]\n', shell: { state: 'lost', epoch: 2 } });
    expect(await session.run('true')).toMatchObject({ shell: { state: 'kept', epoch: 2 } });
    expect(await inspect.broken(how, [command.id, queued.id])).toEqual([]);
    expect(await inspect.containers(how)).toHaveLength(1);
  });

  test("is replaced when removed, where an 'idempotent' command runs again, as Result and stream show", async () => {
    const session = await stack.fleet.session('again');
    const script = 'echo begun; until [ -e /tmp/go ]; do sleep 0.05; done; echo done';
    const command = await session.submit(script, { retry: 'idempotent', timeoutMs: 60_000 });
    const queued = await session.submit('echo after');
    await inspect.untilOutput('again');
    await (await inspect.container('again')).remove({ force: true });
    // The first container is gone.
    await until(
      () => inspect.containers('again'),
      ([next]) => next?.state === 'running',
      60_000,
    );
    const go = await (await inspect.container('again')).exec({ Cmd: ['touch', '/tmp/go'] });
    await go.start({});
    expect(await command.result()).toMatchObject({
      outcome: 'success',
      stdout: 'begun\ndone\n',
      attempts: 2,
      shell: { state: 'lost', epoch: 2 },
    });
    expect(await queued.result()).toMatchObject({ stdout: 'after\n', shell: { state: 'kept', epoch: 2 } });
    const started = (await inspect.events('again')).filter(({ type }) => type === 'command.started');
    expect(started.map(({ entryId, data }) => [entryId, JSON.parse(data.toString()).attempt])).toEqual([
      [command.id.slice(-26), undefined],
      [command.id.slice(-26), 2],
      [queued.id.slice(-26), undefined],
    ]);
    expect(await inspect.broken('again', [command.id, queued.id], new Set([command.id]))).toEqual([]);
  });

  test('is replaced for the next command when removed while idle, which the Result reports', async () => {
    const session = await stack.fleet.session('idle');
    await session.run('before=1');
    await (await inspect.container('idle')).remove({ force: true });
    expect(await session.run('echo "[$before]"')).toMatchObject({
      outcome: 'success',
      stdout: '[]\n',
      shell: { state: 'lost', epoch: 2 },
    });
    expect(await inspect.broken('idle')).toEqual([]);
  });

  test('ends the command that takes all its memory within 2 s; the session goes on', async () => {
    const session = await stack.fleet.session('oom', { limits: { memoryBytes: 64 << 20 } });
    await session.run('before=1');
    const command = await session.submit('echo partial; tail /dev/zero', { timeoutMs: 60_000 });
    await inspect.untilOutput('oom');
    const { result, tookMs } = await endOf(command);
    console.info(
      `over ${transport}: out of memory, reported after ${Math.round(tookMs)} ms: ${result.outcome} ${result.reason}`,
    );
    expect(tookMs).toBeLessThan(REPORTED_WITHIN_MS);
    // The kernel kills the process that has the most memory, which is not the shell.
    expect(result).toMatchObject({
      outcome: 'failure',
      exitCode: 137,
      reason: 'oom',
      stdout: 'partial\n',
      shell: { state: 'kept', epoch: 1 },
    });
    expect(await session.run('echo "[$before]"')).toMatchObject({ outcome: 'success', stdout: '[1]\n' });
    expect(await inspect.broken('oom', [command.id])).toEqual([]);
  });

  test('delays its own session and no other when it is paused', async () => {
    const session = await stack.fleet.session('paused');
    await session.run('before=1');
    const container = await inspect.container('paused');
    await container.pause();
    const waiting = session.run('echo "[$before]"');
    const other = await stack.fleet.session('beside');
    expect((await other.run('echo beside')).stdout).toBe('beside\n');
    await container.unpause();
    expect(await waiting).toMatchObject({ stdout: '[1]\n', shell: { state: 'kept', epoch: 1 } });
  });

  test('cancels its command when the engine stops it, and the next gets a new shell', async () => {
    const session = await stack.fleet.session('stopped');
    const command = await session.submit('echo partial; sleep 100', { timeoutMs: 60_000 });
    await inspect.untilOutput('stopped');
    const stopping = (await inspect.container('stopped')).stop({ t: 1 });
    const result = await command.result();
    await stopping;
    // The keeper receives SIGTERM and cancels the command itself.
    expect(result).toMatchObject({
      outcome: 'cancellation',
      exitCode: null,
      reason: 'cancelled',
      stdout: 'partial\n',
    });
    expect(await session.run('echo on')).toMatchObject({ stdout: 'on\n', shell: { state: 'lost', epoch: 2 } });
  });
});
