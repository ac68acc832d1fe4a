import { isShellfleetError, type SessionEvent, type SessionSpec } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import type { TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

const SLOTS = 32;

let stack: TestFleet;
let inspect: FleetInspector;
beforeAll(async () => {
  ({ stack, inspect } = await startInspectedFleet({ slots: SLOTS }));
});
afterAll(() => endInspectedFleet(stack, inspect));

const cancelled = {
  outcome: 'cancellation',
  exitCode: null,
  reason: 'cancelled',
  cancelReason: 'session closed',
} as const;
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'resolved',
    (error: unknown) => (isShellfleetError(error) ? error.code : String(error)),
  );

async function eventsOf(events: AsyncIterable<SessionEvent>): Promise<string[]> {
  const types: string[] = [];
  for await (const { type } of events) types.push(type);
  return types;
}

/** Returns the worker's log messages about failed shutdown commands of a session. */
const shutdownProblems = (sessionId: string): string[] =>
  (stack.workers[0]?.log ?? '')
    .split('\n')
    .filter((line) => line.includes('session.shutdown-command-failed') && line.includes(`"${sessionId}"`))
    .map((line) => JSON.parse(line).problem);

describe('the start and the end of a session', () => {
  // S1-41, S1-43
  test('set variables and run startup commands before the first command and after a restart', async () => {
    const spec = {
      env: { GREETING: 'hello "there" $(no)' },
      cwd: '/tmp',
      startupCommands: ['from=startup', 'echo started >> /tmp/log', 'cd /usr'],
    };
    const session = await stack.fleet.session('startup', spec);
    const script = 'echo "$GREETING|$from"; pwd; wc -l < /tmp/log; printenv GREETING';
    expect(await session.run(script)).toEqual(
      expectedResult('startup', { stdout: 'hello "there" $(no)|startup\n/usr\n1\nhello "there" $(no)\n' }),
    );
    await session.run('from=changed; cd /');
    await session.restart();
    expect(await session.run(script)).toEqual(
      expectedResult('startup', {
        stdout: 'hello "there" $(no)|startup\n/usr\n2\nhello "there" $(no)\n',
        shell: { state: 'kept', epoch: 2 },
      }),
    );
  });

  // S1-40, S1-41
  test('make a failed startup command the error of every command, with its output', async () => {
    const session = await stack.fleet.session('bad-startup', {
      startupCommands: ['true', 'echo not here >&2; exit 5'],
    });
    const result = await session.run('echo never');
    expect(result).toEqual(
      expectedResult('bad-startup', {
        outcome: 'error',
        exitCode: null,
        reason: undefined as never,
        shell: expect.any(Object) as never,
        error: {
          code: 'SESSION_START_FAILED',
          message: "Startup command 'echo not here >&2; exit 5' failed with exit code 5. Its output: not here",
          retryable: true,
          context: {},
        },
      }),
    );
    expect((await session.run('echo never')).error?.code).toBe('SESSION_START_FAILED');
    await session.close();
  });

  // S2-19
  test('log a command that ended as an error in one line, without the script', async () => {
    const session = await stack.fleet.session('logged', { startupCommands: ['exit 5'] });
    const { commandId } = await session.run('echo never');
    const lines = await until(
      async () => (stack.workers[0]?.log ?? '').split('\n').filter((line) => line.includes(commandId)),
      (found) => found.some((line) => line.includes('"command.completed"')),
    );
    const completed = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'command.completed');
    expect(completed).toEqual([
      expect.objectContaining({
        level: 'warn',
        'shellfleet.command.outcome': 'error',
        'error.type': 'SESSION_START_FAILED',
        timings: expect.any(Object),
      }),
    ]);
    expect(lines.join('\n')).not.toContain('echo never');
    await session.close();
  });

  test('stop a startup command that takes too long', async () => {
    const session = await stack.fleet.session('slow-startup', {
      startupCommands: ['sleep 4321'],
      startupTimeoutMs: 300,
    });
    expect((await session.run('echo never')).error?.message).toBe(
      "Startup command 'sleep 4321' took longer than 300 ms.",
    );
    await session.close();
  });

  // S1-42, S1-37
  test('run all shutdown commands at close, also after one that fails', async () => {
    // Only the worker's log remains after the sandbox.
    const session = await stack.fleet.session('shutdown', {
      shutdownCommands: ['[ "$kept" = yes ] || exit 9', 'exit 6', 'sleep 4321'],
      commandTimeoutMs: 400,
    });
    await session.run('kept=yes');
    await session.close();
    expect(shutdownProblems('shutdown')).toEqual([
      expect.stringContaining("Shutdown command 'exit 6' failed with exit code 6"),
      expect.stringContaining("Shutdown command 'sleep 4321' took longer than 400 ms"),
    ]);
  });

  // S1-04, S1-11
  test.each([
    ['kills its shell', 'kill -9 $$', async () => {}],
    ['cannot be stopped', "trap '' URG; while :; do :; done", async () => {}],
    [
      'runs when its sandbox is removed',
      'touch closing; sleep 4321',
      async (id: string) => {
        const container = await inspect.container(id);
        await inspect.untilFile(container, '/workspace/closing');
        await container.remove({ force: true });
      },
    ],
  ])('free everything at close after a shutdown command that %s', async (what, first, meanwhile) => {
    const id = `step-${what.replaceAll(' ', '-')}`;
    const spec = { shutdownCommands: [first, 'exit 6'], commandTimeoutMs: 5_000, terminationTimeoutMs: 1_000 };
    const session = await stack.fleet.session(id, spec);
    await session.run('kept=yes');
    await Promise.all([session.close(), meanwhile(id)]);
    expect(await inspect.containers(id)).toEqual([]);
    expect((await session.info()).state).toBe('closed');
    expect(shutdownProblems(id)).toHaveLength(2);
    const open = (await inspect.containers()).length;
    await until(
      async () => (await stack.fleet.hosts())[0]?.free,
      (free) => free === SLOTS - open,
    );
    expect((await (await stack.fleet.session(id)).run('echo "[$kept]"')).stdout).toBe('[]\n');
  });
});

describe('restart', () => {
  // S1-10, S1-42
  test('runs no shutdown commands, but the idle timeout does', async () => {
    const session = await stack.fleet.session('shutdown-when-idle', {
      shutdownCommands: ['echo "$kept" >&2; exit 7'],
      idleTimeoutMs: 500,
    });
    await session.restart();
    await session.run('kept=yes');
    expect(shutdownProblems('shutdown-when-idle')).toEqual([]);
    await until(
      () => session.info(),
      ({ state }) => state === 'lost',
    );
    expect(shutdownProblems('shutdown-when-idle')).toEqual([expect.stringMatching(/failed with exit code 7.*yes/)]);
  });

  test('gives a fresh shell in order, ends background processes, and keeps the files', async () => {
    const session = await stack.fleet.session('restart');
    await session.run('kept=no; cd /tmp; echo file > /workspace/f; sleep 4321 &');
    await session.restart();
    // pgrep leaves out the state Z, because a killed process may not be reaped yet.
    const script = 'echo "[$kept]"; pwd; cat /workspace/f; pgrep -x -r D,R,S,T sleep | wc -l';
    expect(await session.run(script)).toEqual(
      expectedResult('restart', { stdout: '[]\n/workspace\nfile\n0\n', shell: { state: 'kept', epoch: 2 } }),
    );
    expect(await session.info()).toMatchObject({ state: 'ready', epoch: 2 });
  });

  test('succeeds for a session without a shell, and the next command runs', async () => {
    const session = await stack.fleet.session('restart-first');
    await session.restart();
    expect((await session.run('echo on')).stdout).toBe('on\n');
  });
});

describe('close', () => {
  // S1-12
  test('cancels running and queued commands, refuses new ones, and frees the id', async () => {
    const session = await stack.fleet.session('closes');
    const running = await session.submit('echo begun; touch begun; sleep 4321');
    for await (const _chunk of running.output()) break;
    const queued = await session.submit('echo never');
    const closing = session.close();
    expect(await running.result()).toEqual(expectedResult('closes', { ...cancelled, stdout: 'begun\n' }));
    expect(await queued.result()).toEqual(
      expectedResult('closes', { ...cancelled, hostId: null, shell: { state: 'kept', epoch: 0 } }),
    );
    await closing;
    expect((await session.info()).state).toBe('closed');
    expect(await codeOf(session.run('echo never'))).toBe('SESSION_CLOSED');
    expect(await codeOf(session.files.readText('/workspace/begun'))).toBe('SESSION_CLOSED');
    expect(await codeOf(session.restart())).toBe('SESSION_CLOSED');
    expect(await eventsOf(session.events())).toEqual([
      'command.accepted',
      'session.queued',
      'session.opened',
      'command.started',
      'command.output',
      'command.accepted',
      'command.completed',
      'command.completed',
      'session.closed',
    ]);
    const next = await stack.fleet.session('closes', { env: { ANOTHER: 'spec' } });
    expect(await next.run('echo $ANOTHER; ls')).toMatchObject({ outcome: 'success', stdout: 'spec\n' });
    expect(await codeOf(session.run('echo never'))).toBe('SESSION_CLOSED');
    await session.close(); // this handle is of the previous generation, so nothing happens
    expect((await next.run('echo on')).stdout).toBe('on\n');
  });

  test('does nothing for a closed or unused session, and frees the slot', async () => {
    const session = await stack.fleet.session('closed-twice');
    await session.run('true');
    await Promise.all([session.close(), session.close()]);
    await session.close();
    await (await stack.fleet.session('never-used')).close();
    await until(
      async () => (await stack.fleet.hosts())[0],
      (host) => host !== undefined && host.free > 0,
    );
  });
});

describe('an idle session', () => {
  // invariant 5, S1-05
  test('ends after its idle timeout; the next Result reports the new shell', async () => {
    const session = await stack.fleet.session('idle', { idleTimeoutMs: 300 });
    await session.run('kept=no');
    await until(
      () => session.info(),
      ({ state }) => state === 'lost',
    );
    expect(await session.run('echo "[$kept]"')).toEqual(
      expectedResult('idle', {
        stdout: '[]\n',
        shell: { state: 'lost', reason: expect.any(String) as never, epoch: 2 },
      }),
    );
    expect((await session.run('true')).shell).toEqual({ state: 'kept', epoch: 2 });
  });

  test('ends when its shell reaches maxLifetimeMs, but not while a command runs', async () => {
    const session = await stack.fleet.session('old', { maxLifetimeMs: 5_000 });
    expect(await session.run('sleep 5.2; echo done')).toMatchObject({ outcome: 'success', stdout: 'done\n' });
    await until(
      () => session.info(),
      ({ state }) => state === 'lost',
    );
    expect((await session.run('kept=yes')).shell).toMatchObject({ state: 'lost', epoch: 2 });
    expect(await session.run('echo $kept')).toMatchObject({ stdout: 'yes\n', shell: { state: 'kept', epoch: 2 } });
  });
});

describe('fleet.session', () => {
  const spec: SessionSpec = { env: { A: '1', B: '2' }, output: { maxBytes: 1_000 }, commandTimeoutMs: 5_000 };

  // S1-09, S1-38
  test('attaches to an equal spec, and refuses another one with the differing fields', async () => {
    const session = await stack.fleet.session('spec', spec);
    await session.run('kept=yes');
    const equal = await stack.fleet.session('spec', {
      commandTimeoutMs: 5_000,
      output: { keep: 'head-tail', maxBytes: 1_000 },
      env: { B: '2', A: '1' },
    });
    expect((await equal.run('echo $kept')).stdout).toBe('yes\n');
    expect((await (await stack.fleet.session('spec')).run('echo $kept')).stdout).toBe('yes\n');
    const other = stack.fleet.session('spec', { ...spec, env: { A: '1' } });
    await expect(other).rejects.toMatchObject({
      code: 'SESSION_CONFLICT',
      retryable: false,
      context: { sessionId: 'spec', fields: [expect.stringContaining('env')] },
    });
  });

  test('lists a new session at once, which takes no slot or container until used', async () => {
    const free = async () => (await stack.fleet.hosts())[0]?.free;
    const session = await stack.fleet.session('only-recorded');
    const recorded = { id: 'only-recorded', state: 'queued', hostId: null, epoch: 0 };
    expect(await session.info()).toMatchObject(recorded);
    // A host reports freed slots a moment after their sessions have ended.
    const living = await Array.fromAsync(stack.fleet.sessions());
    await expect.poll(free, { timeout: 10_000 }).toBe(SLOTS - living.filter(({ hostId }) => hostId !== null).length);
    expect(await session.info()).toMatchObject(recorded);
    const listed = await Array.fromAsync(stack.fleet.sessions());
    expect(listed.filter(({ id }) => id === 'only-recorded')).toEqual([await session.info()]);
    await session.close();
  });

  test('keeps ids apart that differ in case, and allows names of object members', async () => {
    const ids = ['Abc', 'abc', '__proto__', 'constructor', 'toString', '123', '.', '..', '-rf'];
    const results = await Promise.all(ids.map(async (id) => (await stack.fleet.session(id)).run(`echo ${id}`)));
    expect(results.map(({ sessionId, stdout }) => [sessionId, stdout])).toEqual(ids.map((id) => [id, `${id}\n`]));
    await Promise.all(ids.map(async (id) => (await stack.fleet.session(id)).close()));
  });
});
