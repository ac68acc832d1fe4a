import { describe, expect, test } from 'vitest';
import { type InspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { until } from '../support/until.ts';

// A command that is submitted to an idle session is started in the name of its host. These tests stop or end that host.

/** Opens an idle session on the first worker. */
async function openIdle({ stack, worker }: InspectedFleet, id: string, options = {}) {
  await Promise.all(stack.workers.filter((other) => other !== worker).map((other) => other.stop('SIGTERM')));
  const session = await stack.fleet.session(id, options);
  await session.run('n=1');
  return session;
}

const isUnheard = ({ stack, worker }: InspectedFleet) =>
  until(
    () => stack.fleet.hosts(),
    (hosts) => hosts.find(({ id }) => id === worker.hostId)?.state !== 'up',
  );

// The tests whose owner may stay away for as long as it takes run at the same time, the others by themselves.
describe('a command that starts in the name of an idle owner', () => {
  test('waits for the next host when the owner stands still past its lease', { concurrent: true }, async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { stack, worker, inspect } = pair;
    const session = await openIdle(pair, 'stalled', { hostGraceMs: 0, onHostLoss: 'recreate' });
    worker.signal('SIGSTOP');
    await isUnheard(pair);
    const command = await session.submit('echo once');
    const { runningCommandId } = await session.info();
    expect(runningCommandId).toBeUndefined();
    await stack.workers.find((other) => other !== worker)?.start();
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: 'once\n', shell: { state: 'lost' } });
    worker.signal('SIGCONT');
    expect(await inspect.broken('stalled', [command.id])).toEqual([]);
  });

  test('begins when its killed worker is back', { concurrent: true }, async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { worker, inspect } = pair;
    const session = await openIdle(pair, 'killed');
    worker.signal('SIGSTOP');
    const command = await session.submit('n=$((n+1)); echo $n');
    await worker.kill();
    await worker.start();
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: '2\n', shell: { state: 'kept' } });
    expect(await inspect.broken('killed', [command.id])).toEqual([]);
  });

  test('ends as a cancellation or a success when its worker is told to end', { concurrent: true }, async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { worker, inspect } = pair;
    const session = await openIdle(pair, 'ended');
    worker.signal('SIGSTOP');
    const command = await session.submit('echo never; sleep 60');
    worker.signal('SIGINT');
    worker.signal('SIGCONT');
    expect((await command.result()).outcome).toMatch(/cancellation|success/);
    await worker.start();
    expect(await inspect.broken('ended', [command.id])).toEqual([]);
  });

  test('runs once when the owner stands still for less than its lease', async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { worker, inspect } = pair;
    const session = await openIdle(pair, 'paused');
    worker.signal('SIGSTOP');
    const commands = await Promise.all([1, 2, 3].map((n) => session.submit(`n=$((n+1)); echo ${n} $n`)));
    worker.signal('SIGCONT');
    const results = await Promise.all(commands.map((command) => command.result()));
    expect(results.map(({ stdout }) => stdout)).toEqual(['1 2\n', '2 3\n', '3 4\n']);
    expect(await inspect.broken('paused')).toEqual([]);
  });

  test('is reached by a close and a cancel before its host knows of the command', async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { stack, worker } = pair;
    const closed = await openIdle(pair, 'closed');
    const cancelled = await stack.fleet.session('cancelled');
    await cancelled.run('n=1');
    worker.signal('SIGSTOP');
    const [one, two] = await Promise.all([closed.submit('sleep 60'), cancelled.submit('sleep 60')]);
    const ends = Promise.all([closed.close(), two.cancel()]);
    worker.signal('SIGCONT');
    await ends;
    expect([(await one.result()).outcome, (await two.result()).outcome]).toEqual(['cancellation', 'cancellation']);
    expect(await cancelled.run('echo $n')).toMatchObject({ stdout: '1\n', shell: { state: 'kept' } });
  });
});
