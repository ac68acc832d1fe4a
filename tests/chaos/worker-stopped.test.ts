import { describe, expect, test } from 'vitest';
import { startInspectedFleet } from '../support/inspected-fleet.ts';
import { until } from '../support/until.ts';

// Promise: a worker that gets SIGTERM takes nothing new, finishes or hands over within its grace, and keeps state.
// SIGINT ends sessions.

// The tests about SIGTERM run at the same time, because one of them waits for a long command.
describe('a worker that gets SIGTERM under load', () => {
  test('finishes running commands, leaves queued ones and shells to the next, and loses nothing', {
    concurrent: true,
  }, async () => {
    await using own = await startInspectedFleet();
    const { stack, worker, inspect } = own;
    const ids = Array.from({ length: 6 }, (_, index) => `s${index}`);
    const sessions = await Promise.all(ids.map((id) => stack.fleet.session(id)));
    await Promise.all(sessions.map((session) => session.run('n=0')));
    const commands = await Promise.all(
      sessions.flatMap((session) =>
        Array.from({ length: 12 }, () => session.submit('n=$((n+1)); echo $n >> /tmp/ran; sleep 0.2; echo $n')),
      ),
    );
    await until(
      () => inspect.events('s0'),
      (events) => events.filter(({ type }) => type === 'command.completed').length >= 3,
    );
    await worker.stop('SIGTERM');
    const waiting = await Promise.all(sessions.map((session) => session.info()));
    expect(waiting.some(({ queuedCommands }) => queuedCommands > 0)).toBe(true);
    expect(waiting.filter(({ runningCommandId }) => runningCommandId !== undefined)).toEqual([]);
    await worker.start();
    const results = await Promise.all(commands.map((command) => command.result()));
    expect(results.map(({ stdout }) => stdout)).toEqual(
      ids.flatMap(() => Array.from({ length: 12 }, (_, n) => `${n + 1}\n`)),
    );
    expect(results.filter(({ shell }) => shell.state !== 'kept')).toEqual([]);
    for (const session of sessions) {
      expect((await session.run('wc -l < /tmp/ran')).stdout).toBe('12\n');
      expect(await inspect.broken(session.id)).toEqual([]);
    }
  });

  test('keeps the lease of an idle shell while a command of another session runs', { concurrent: true }, async () => {
    await using own = await startInspectedFleet();
    const { stack, worker, inspect } = own;
    const short = await stack.fleet.session('short', { hostGraceMs: 1_000 });
    const long = await stack.fleet.session('long', { hostGraceMs: 1_000 });
    await short.run('kept=yes');
    const running = await long.submit('echo here; sleep 8; echo done');
    await inspect.untilOutput('long');
    await worker.stop('SIGTERM');
    expect(await running.result()).toMatchObject({ outcome: 'success', stdout: 'here\ndone\n' });
    await worker.start();
    expect(await short.run('echo $kept')).toMatchObject({ stdout: 'yes\n', shell: { state: 'kept', epoch: 1 } });
  });
});

describe('a worker that gets SIGINT', () => {
  test('ends its sessions, cancels running commands, and leaves no container', async ({ expect }) => {
    await using own = await startInspectedFleet();
    const { stack, worker, inspect } = own;
    const session = await stack.fleet.session('ended');
    const idle = await stack.fleet.session('idle');
    await idle.run('before=1');
    const command = await session.submit('echo here; sleep 100', { timeoutMs: 60_000 });
    const queued = await session.submit('echo later');
    await inspect.untilOutput('ended');
    await worker.stop('SIGINT');
    await expect.poll(() => inspect.containers()).toEqual([]);
    expect(await command.result()).toMatchObject({ outcome: 'cancellation', stdout: 'here\n' });
    await worker.start();
    expect(await queued.result()).toMatchObject({ outcome: 'success', stdout: 'later\n', shell: { state: 'lost' } });
    expect(await idle.run('echo "[$before]"')).toMatchObject({ stdout: '[]\n', shell: { state: 'lost', epoch: 2 } });
    expect(await inspect.broken('ended', [command.id, queued.id])).toEqual([]);
  });

  test('ends at once at a second SIGINT, and the next worker removes leftovers', async ({ expect }) => {
    await using own = await startInspectedFleet();
    const { stack, worker, inspect } = own;
    const session = await stack.fleet.session('stubborn');
    const command = await session.submit("trap '' INT TERM; echo here; while :; do sleep 1; done", {
      timeoutMs: 60_000,
      killGraceMs: 60_000,
    });
    await inspect.untilOutput('stubborn');
    worker.signal('SIGINT');
    const info = await until(
      () => stack.fleet.hosts(),
      ([host]) => host?.state !== 'up',
    );
    expect(info).toHaveLength(1);
    await worker.stop('SIGINT');
    expect(await inspect.containers('stubborn')).toHaveLength(1);
    expect(await command.cancel()).toBe(true);
    await worker.start();
    await session.close();
    expect((await command.result()).outcome).toBe('cancellation');
    await expect.poll(() => inspect.containers()).toEqual([]);
    expect(await inspect.broken('stubborn', [command.id])).toEqual([]);
  });
});
