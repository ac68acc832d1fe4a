import type { Command } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FleetInspector, inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: container OOM, killed or removed: terminal event within 2 s with the reason; the next command is told that the shell is new.

const SAID_WITHIN_MS = 2_000;

describe.each(['socket', 'attach'] as const)('A container over %s', (transport) => {
  let stack: TestFleet;
  let inspect: FleetInspector;

  beforeAll(async () => {
    stack = await startFleet({ transport });
    inspect = inspectFleet(stack);
  });
  afterAll(async () => {
    await stack?.[Symbol.asyncDispose]();
    expect(await inspect.containers()).toEqual([]);
    await inspect[Symbol.asyncDispose]();
  });

  const containerOf = async (sessionId: string) => {
    const [container] = await inspect.containers(sessionId);
    return inspect.docker.getContainer(container?.id ?? '');
  };
  const untilOutput = (sessionId: string) =>
    until(
      () => inspect.events(sessionId),
      (events) => events.some(({ type }) => type === 'command.output'),
    );
  const endOf = async (command: Command) => {
    const from = performance.now();
    const result = await command.result();
    return { result, tookMs: performance.now() - from };
  };

  test.each([
    ['killed', { force: false, reason: 'killed' }],
    ['removed', { force: true, reason: 'removed' }],
  ])(
    'that is %s ends its command within 2 s, and the next is told that the shell is new',
    async (how, { force, reason }) => {
      const session = await stack.fleet.session(how);
      await session.run('before=1');
      const command = await session.submit('echo partial; sleep 100', { timeoutMs: 60_000 });
      const queued = await session.submit('echo "[$before]"');
      await untilOutput(how);
      const container = await containerOf(how);
      await (force ? container.remove({ force }) : container.kill());
      const { result, tookMs } = await endOf(command);
      console.info(`over ${transport}: ${how}, said after ${Math.round(tookMs)} ms`);
      expect(result).toMatchObject({
        outcome: 'error',
        reason: 'container-removed',
        stdout: 'partial\n',
        error: { code: 'CONTAINER_LOST', context: { reason } },
        shell: { state: 'lost' },
      });
      expect(tookMs).toBeLessThan(SAID_WITHIN_MS);
      expect(await queued.result()).toMatchObject({ stdout: '[]\n', shell: { state: 'lost', epoch: 2 } });
      expect(await session.run('true')).toMatchObject({ shell: { state: 'kept', epoch: 2 } });
      expect(await inspect.broken(how, [command.id, queued.id])).toEqual([]);
      expect(await inspect.containers(how)).toHaveLength(1);
    },
  );

  test('that is removed while nothing runs is replaced for the next command, which is told', async () => {
    const session = await stack.fleet.session('idle');
    await session.run('before=1');
    await (await containerOf('idle')).remove({ force: true });
    expect(await session.run('echo "[$before]"')).toMatchObject({
      outcome: 'success',
      stdout: '[]\n',
      shell: { state: 'lost', epoch: 2 },
    });
    expect(await inspect.broken('idle')).toEqual([]);
  });

  test('that runs out of memory ends the command that took it within 2 s, with the reason, and the session goes on', async () => {
    const session = await stack.fleet.session('oom', { limits: { memoryBytes: 64 << 20 } });
    await session.run('before=1');
    const command = await session.submit('echo partial; tail /dev/zero', { timeoutMs: 60_000 });
    await untilOutput('oom');
    const { result, tookMs } = await endOf(command);
    console.info(
      `over ${transport}: out of memory, said after ${Math.round(tookMs)} ms: ${result.outcome} ${result.reason}`,
    );
    expect(result).toMatchObject({ reason: 'oom', stdout: expect.stringContaining('partial\n') });
    const next = await session.run('echo "[$before]"');
    expect(next.outcome).toBe('success');
    // Either only the command died, or the shell with it; what is said is what is so.
    expect(next.stdout).toBe(next.shell.state === 'lost' || next.shell.epoch > 1 ? '[]\n' : '[1]\n');
    expect(await inspect.broken('oom', [command.id])).toEqual([]);
  });

  test('that is paused delays its own session, and no other', async () => {
    const session = await stack.fleet.session('paused');
    await session.run('before=1');
    const container = await containerOf('paused');
    await container.pause();
    const waiting = session.run('echo "[$before]"');
    const other = await stack.fleet.session('beside');
    expect((await other.run('echo beside')).stdout).toBe('beside\n');
    await container.unpause();
    expect(await waiting).toMatchObject({ stdout: '[1]\n', shell: { state: 'kept', epoch: 1 } });
  });

  test('whose keeper is told to stop is lost like any other', async () => {
    const session = await stack.fleet.session('stopped');
    const command = await session.submit('echo partial; sleep 100', { timeoutMs: 60_000 });
    await untilOutput('stopped');
    const stopping = (await containerOf('stopped')).stop({ t: 1 });
    const result = await command.result();
    await stopping;
    expect(result).toMatchObject({ exitCode: null, stdout: 'partial\n' });
    expect(['error', 'cancellation']).toContain(result.outcome);
    expect(await session.run('echo on')).toMatchObject({ stdout: 'on\n', shell: { state: 'lost', epoch: 2 } });
  });
});
