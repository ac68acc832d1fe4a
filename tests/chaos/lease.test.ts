import type { Command, Session } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { type InspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import type { TestFleet, TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Invariant 1 and the promises about a lost host: its loss is reported within seconds, nothing moves before its lease
// ends, and a host that comes back writes nothing more.

/** Returns the worker that holds a session, and the other one. */
async function hostsOf({ workers }: TestFleet, session: Session): Promise<{ holder: TestWorker; other: TestWorker }> {
  const { hostId } = await session.run('true');
  const holder = workers.find((worker) => worker.hostId === hostId) as TestWorker;
  return { holder, other: workers.find((worker) => worker !== holder) as TestWorker };
}

async function eventTypes(inspect: FleetInspector, sessionId: string): Promise<string[]> {
  return (await inspect.events(sessionId)).map(({ type }) => type);
}

const NO_GRACE = { hostGraceMs: 0 };
/**
 * Time in which a lost host is reported. The last heartbeat counts for 4 s, and hosts check at least every 0.6 s; the
 * rest is for a busy machine.
 */
const REPORTED_WITHIN_MS = 6_000;

// The tests that wait until a lease has ended do so at the same time. Those that measure a time, or need a host back
// in time, run by themselves.
describe('a worker stopped with SIGSTOP past its lease', () => {
  test('writes nothing afterwards: another host adopted the session, and its own container is removed', {
    concurrent: true,
  }, async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { stack, inspect } = pair;
    const session = await stack.fleet.session('stopped', { ...NO_GRACE, onHostLoss: 'recreate' });
    const { holder, other } = await hostsOf(stack, session);
    const command = await session.submit('while :; do echo tick; sleep 0.02; done', { timeoutMs: 60_000 });
    const queued = [await session.submit('echo first'), await session.submit('echo second')];
    await inspect.untilOutput('stopped');
    holder.signal('SIGSTOP');
    expect(await command.result()).toMatchObject({ outcome: 'lost', reason: 'host-lost', shell: { state: 'lost' } });
    const [first, second] = await Promise.all(queued.map((waiting) => waiting.result()));
    const reason = `its host ${holder.hostId} was lost`;
    expect(first).toMatchObject({
      stdout: 'first\n',
      hostId: other.hostId,
      shell: { state: 'lost', epoch: 2, reason },
    });
    expect(second).toMatchObject({ stdout: 'second\n', hostId: other.hostId, shell: { state: 'kept', epoch: 2 } });
    const before = (await inspect.containers('stopped')).map(({ hostId }) => hostId);
    expect(before.sort()).toEqual(['h1', 'h2']);
    const events = await inspect.events('stopped');
    holder.signal('SIGCONT');
    await until(
      () => inspect.containers('stopped'),
      (containers) => containers.every(({ hostId }) => hostId === other.hostId),
    );
    expect(await inspect.events('stopped')).toEqual(events);
    expect(await session.run('echo third')).toMatchObject({ stdout: 'third\n', hostId: other.hostId });
    expect(await inspect.broken('stopped', [command.id, ...queued.map(({ id }) => id)])).toEqual([]);
  });

  test('stores no more output when it continues during a flood, and serves other sessions', {
    concurrent: true,
  }, async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { stack, inspect } = pair;
    const session = await stack.fleet.session('flood', { ...NO_GRACE, output: { streamBytes: 32 << 20 } });
    const { holder, other } = await hostsOf(stack, session);
    const command = await session.submit('yes 0123456789abcdef | head -c 200M', { timeoutMs: 60_000 });
    await inspect.untilOutput('flood');
    holder.signal('SIGSTOP');
    expect(await command.result()).toMatchObject({ outcome: 'lost' });
    holder.signal('SIGCONT');
    await until(
      () => inspect.containers('flood'),
      (containers) => containers.every(({ hostId }) => hostId === other.hostId),
    );
    other.signal('SIGSTOP');
    const elsewhere = await stack.fleet.session('elsewhere');
    expect(await elsewhere.run('echo here')).toMatchObject({ stdout: 'here\n', hostId: holder.hostId });
    other.signal('SIGCONT');
    expect(await inspect.broken('flood', [command.id])).toEqual([]);
  });

  test('continues all sessions and commands when it wakes up within its lease', async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { stack, inspect } = pair;
    const session = await stack.fleet.session('woken');
    const { holder } = await hostsOf(stack, session);
    const command = await session.submit('for i in $(seq 1 60); do echo $i; sleep 0.05; done; kept=yes');
    const queued = session.run('echo $kept');
    await inspect.untilOutput('woken');
    holder.signal('SIGSTOP');
    await until(
      () => inspect.isAlive(holder.hostId),
      (alive) => !alive,
    );
    await until(
      () => eventTypes(inspect, 'woken'),
      (types) => types.includes('host.unreachable'),
    );
    holder.signal('SIGCONT');
    expect(await command.result()).toMatchObject({
      outcome: 'success',
      hostId: holder.hostId,
      shell: { state: 'kept' },
    });
    expect((await queued).stdout).toBe('yes\n');
    expect(await inspect.broken('woken', [command.id])).toEqual([]);
  });
});

describe('a session whose host is out of reach', () => {
  test('closes at once with cancellations; its host removes the sandbox when it is back', async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { stack, inspect } = pair;
    const session = await stack.fleet.session('closed');
    await session.run('before=1');
    const command = await session.submit('echo here; sleep 100', { timeoutMs: 60_000 });
    const queued = await session.submit('echo later');
    await inspect.untilOutput('closed');
    const { hostId } = await session.info();
    const holder = stack.workers.find((worker) => worker.hostId === hostId) as TestWorker;
    await holder.kill();
    await until(
      () => inspect.isAlive(holder.hostId),
      (alive) => !alive,
    );
    await session.close();
    expect([await command.result(), await queued.result()]).toMatchObject([
      { outcome: 'cancellation' },
      { outcome: 'cancellation' },
    ]);
    expect(await session.info()).toMatchObject({ state: 'closed' });
    const next = await stack.fleet.session('closed');
    const first = next.run('echo "next run [$before]"');
    await holder.start();
    expect(await first).toMatchObject({ outcome: 'success', stdout: 'next run []\n', shell: { epoch: 1 } });
    await until(
      () => inspect.containers('closed'),
      (containers) => containers.length === 1,
    );
    expect(await inspect.broken('closed', [command.id, queued.id])).toEqual([]);
  });
});

describe('a lost host', () => {
  const lose = async ({ stack, inspect }: InspectedFleet, session: Session, command: Command): Promise<void> => {
    await inspect.untilOutput(session.id);
    const { hostId } = await session.info();
    const holder = stack.workers.find((worker) => worker.hostId === hostId) as TestWorker;
    expect(command.sessionId).toBe(session.id);
    await holder.kill();
  };

  test('is reported as unreachable within seconds, and nothing moves before its lease ends', async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { stack, inspect } = pair;
    const session = await stack.fleet.session('silent', { hostGraceMs: 4_000 });
    const command = await session.submit('echo here; sleep 100', { timeoutMs: 60_000 });
    const queued = await session.submit('echo queued');
    await lose(pair, session, command);
    const from = performance.now();
    await until(
      () => eventTypes(inspect, 'silent'),
      (types) => types.includes('host.unreachable'),
    );
    const reportedMs = performance.now() - from;
    console.info(`host.unreachable was reported ${Math.round(reportedMs)} ms after the SIGKILL`);
    expect(reportedMs).toBeLessThan(REPORTED_WITHIN_MS);
    expect((await eventTypes(inspect, 'silent')).filter((type) => type === 'command.completed')).toEqual([]);
    expect(await session.info()).toMatchObject({ state: 'unreachable' });
    expect(await command.result()).toMatchObject({ outcome: 'lost', reason: 'host-lost', shell: { state: 'lost' } });
    expect(await queued.result()).toMatchObject({ outcome: 'error', error: { code: 'SESSION_LOST' } });
    console.info(`the running command was reported as lost ${Math.round(performance.now() - from)} ms after it`);
    expect(await eventTypes(inspect, 'silent')).toContain('session.lost');
    expect(await inspect.broken('silent', [command.id, queued.id])).toEqual([]);
  });

  test("ends running and, with onHostLoss 'fail', queued commands; later ones get new shells", {
    concurrent: true,
  }, async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { stack, inspect } = pair;
    const session = await stack.fleet.session('fails', NO_GRACE);
    await session.run('before=1');
    const command = await session.submit('echo here; sleep 100', { timeoutMs: 60_000 });
    const queued = [await session.submit('echo a'), await session.submit('echo b')];
    await lose(pair, session, command);
    expect(await command.result()).toMatchObject({ outcome: 'lost', reason: 'host-lost' });
    for (const waiting of queued) {
      expect(await waiting.result()).toMatchObject({ outcome: 'error', error: { code: 'SESSION_LOST' } });
    }
    expect(await session.run('echo "[$before]"')).toMatchObject({
      stdout: '[]\n',
      shell: { state: 'lost', epoch: 2 },
    });
    expect(await session.run('true')).toMatchObject({ shell: { state: 'kept', epoch: 2 } });
    expect(await inspect.broken('fails', [command.id, ...queued.map(({ id }) => id)])).toEqual([]);
  });

  test("moves queued commands to a newly started shell with onHostLoss 'recreate', as Results report", {
    concurrent: true,
  }, async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { stack, inspect } = pair;
    const spec = { ...NO_GRACE, onHostLoss: 'recreate' as const, startupCommands: ['started=again'] };
    const session = await stack.fleet.session('recreated', spec);
    await session.run('before=1');
    const command = await session.submit('echo here; sleep 100', { timeoutMs: 60_000 });
    const queued = await session.submit('echo "$started[$before]"');
    await lose(pair, session, command);
    expect(await command.result()).toMatchObject({ outcome: 'lost' });
    expect(await queued.result()).toMatchObject({ stdout: 'again[]\n', shell: { state: 'lost', epoch: 2 } });
    expect(await inspect.broken('recreated', [command.id, queued.id])).toEqual([]);
  });

  // invariant 3
  test("has a command marked 'idempotent' run again, and no other", { concurrent: true }, async () => {
    await using pair = await startInspectedFleet({ workers: 2 });
    const { stack, inspect } = pair;
    const session = await stack.fleet.session('again', { ...NO_GRACE, onHostLoss: 'recreate' });
    // The command prints before its host is lost, so the second run's output has to follow the first one's in the
    // stream.
    const script = 'for i in 1 2 3; do echo $i; sleep 0.2; done; [ -e /tmp/go ] || sleep 4';
    const command = await session.submit(script, { retry: 'idempotent', timeoutMs: 60_000 });
    const never = await session.submit('echo never ran before');
    await lose(pair, session, command);
    expect(await command.result()).toMatchObject({ outcome: 'success', stdout: '1\n2\n3\n' });
    expect(await never.result()).toMatchObject({ outcome: 'success' });
    const started = (await inspect.events('again')).filter(({ type }) => type === 'command.started');
    expect(started.map(({ entryId }) => entryId)).toEqual(
      [command.id, command.id, never.id].map((id) => id.slice(-26)),
    );
    expect(await inspect.broken('again', [command.id, never.id], new Set([command.id]))).toEqual([]);
  });
});
