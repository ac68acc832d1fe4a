import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import type { TestFleet, TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Invariant 5 when a restarted worker cannot adopt its sandboxes: a fresh shell is never reported as the old one.

let stack: TestFleet;
let worker: TestWorker;
let inspect: FleetInspector;
beforeAll(async () => {
  ({ stack, worker, inspect } = await startInspectedFleet());
});
afterAll(() => endInspectedFleet(stack, inspect));

describe('a restarted worker', () => {
  test('reports a shell as lost, with its command, when the keeper does not answer', async () => {
    const idle = await stack.fleet.session('idle');
    const busy = await stack.fleet.session('busy');
    await Promise.all([idle.run('kept=1'), busy.run('kept=1')]);
    const command = await busy.submit('echo begun; sleep 600', { timeoutMs: 700_000 });
    await inspect.untilOutput('busy');
    const paused = await Promise.all(['idle', 'busy'].map((id) => inspect.container(id)));
    await worker.kill();
    await Promise.all(paused.map((container) => container.pause()));
    await worker.start();
    const shell = { state: 'lost', epoch: 2, reason: 'its keeper did not answer when its worker came back' };
    // The keeper has 15 s to answer.
    const [first, lost, second] = await Promise.all([
      idle.run('echo "[$kept]"'),
      command.result(),
      busy.run('echo "[$kept]"'),
    ]);
    expect(first).toMatchObject({ stdout: '[]\n', shell });
    expect(lost).toMatchObject({ outcome: 'lost', reason: 'container-removed', shell: { ...shell, epoch: 1 } });
    expect(second).toMatchObject({ stdout: '[]\n', shell });
    for (const id of ['idle', 'busy']) {
      const types = (await inspect.events(id)).map(({ type }) => type).filter((type) => type.startsWith('session.'));
      expect(types).toEqual(['session.queued', 'session.opened', 'session.lost', 'session.restarted']);
    }
    await until(
      () => inspect.containers(),
      (all) => all.length === 2 && all.every(({ id }) => paused.every((container) => container.id !== id)),
    );
  });

  test('keeps the sandboxes of its namespace after a run under another namespace', async () => {
    const session = await stack.fleet.session('kept');
    await session.run('kept=1');
    await worker.kill();
    await worker.start({ SHELLFLEET_NAMESPACE: `${stack.namespace}-other` });
    await worker.stop('SIGINT');
    await worker.start({ SHELLFLEET_NAMESPACE: stack.namespace });
    expect(await session.run('echo "[$kept]"')).toMatchObject({ stdout: '[1]\n', shell: { state: 'kept', epoch: 1 } });
  });
});
