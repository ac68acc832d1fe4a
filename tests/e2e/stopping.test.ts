import type { Outcome, Result } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ExpectedFields, expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

/** Returns the fields of a stopped command's Result, which has no exit code. */
const stopped = (outcome: Outcome, reason: Result['reason'], own: ExpectedFields = {}): ExpectedFields => ({
  outcome,
  exitCode: null,
  ...(reason === undefined ? {} : { reason }),
  ...own,
});

/**
 * Fields of the Result when the shell was interrupted in a command that had started background jobs. The shell kept
 * all but its list of jobs.
 */
const CAME_BACK = {
  state: 'partial',
  reason: 'the shell re-executed itself: its table of background jobs is gone',
  epoch: 1,
} as const;

/**
 * Processes that do not end by themselves: children in sessions and groups of their own, one of which ignores all
 * signals but SIGKILL. The last one prints `up` when the others were started.
 */
const TREE = `
(trap '' INT TERM HUP; exec sleep 4321) &
setsid sleep 4321 &
(sh -c 'sleep 4321 & wait' &) ; 
bash -c 'echo up; sleep 4321 | cat'`;
/** Counts processes without those that have ended and that the keeper has not reaped yet. */
const COUNT_LEFT = 'pgrep -r D,R,S,T -x sleep | wc -l';

describe.each(['socket', 'attach'] as const)('stopping a command over %s', (transport) => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ transport });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  // S1-26, S1-51, S2-15, S2-16, S2-24, S3-23, S3-29
  test('ends the process tree at a timeout, and keeps partial output and session', async () => {
    const session = await stack.fleet.session('wall');
    await session.run('kept=yes; cd /tmp');
    const result = await session.run(`echo before; echo too >&2; ${TREE}; echo after`, { timeoutMs: 1_500 });
    expect(result).toEqual({
      ...expectedResult(
        'wall',
        stopped('timeout', 'wall', {
          stdout: 'before\nup\n',
          stderr: 'too\n',
          output: expect.any(String) as never,
          shell: CAME_BACK,
        }),
      ),
      limitMs: 1_500,
    });
    expect(result.timings.runMs).toBeGreaterThanOrEqual(1_500);
    expect(result.timings.runMs).toBeLessThan(1_500 + 1_500 + 1_000);
    expect(await session.run(`${COUNT_LEFT}; pwd; echo $kept`)).toEqual(
      expectedResult('wall', { stdout: '0\n/tmp\nyes\n' }),
    );
  });

  test('happens after noOutputTimeoutMs without output, and not while output continues', async () => {
    const session = await stack.fleet.session('silent');
    const talks = await session.run('for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done', { noOutputTimeoutMs: 500 });
    expect(talks).toEqual(expectedResult('silent', { stdout: '1\n2\n3\n4\n5\n6\n' }));
    const silent = await session.run('echo one; sleep 0.1; echo two >&2; sleep 4321', { noOutputTimeoutMs: 400 });
    expect(silent).toEqual({
      ...expectedResult('silent', stopped('timeout', 'no-output', { stdout: 'one\n', stderr: 'two\n' })),
      limitMs: 400,
    });
    expect(await session.run(COUNT_LEFT)).toEqual(expectedResult('silent', { stdout: '0\n' }));
  });

  // S2-24
  test('ends the process tree at a cancel, and keeps partial output and session', async () => {
    const session = await stack.fleet.session('cancelled');
    await session.run('kept=yes');
    const command = await session.submit(`echo before; ${TREE}; echo after`, { timeoutMs: 60_000 });
    for await (const chunk of command.output()) if (chunk.text.includes('up')) break;
    expect(await command.cancel('changed my mind')).toBe(true);
    expect(await command.result()).toEqual(
      expectedResult('cancelled', {
        ...stopped('cancellation', 'cancelled', { stdout: 'before\nup\n', shell: CAME_BACK }),
        cancelReason: 'changed my mind',
      }),
    );
    expect(await command.cancel()).toBe(false);
    expect(await session.run(`${COUNT_LEFT}; echo $kept`)).toEqual(expectedResult('cancelled', { stdout: '0\nyes\n' }));
  });

  test('leaves a background server of an earlier command running, with its workers', async () => {
    const session = await stack.fleet.session('server');
    await session.run('(while :; do sh -c "sleep 0.05"; echo beat >> /tmp/beats; done) & echo $! > /tmp/pid');
    expect((await session.run('sleep 4321', { timeoutMs: 300 })).outcome).toBe('timeout');
    const script =
      'kill -0 $(cat /tmp/pid) && n=$(wc -l < /tmp/beats); until [ $(wc -l < /tmp/beats) -gt $((n + 1)) ]; do sleep 0.02; done; echo beats';
    expect(await session.run(script)).toEqual(expectedResult('server', { stdout: 'beats\n' }));
  });
});

describe('cancelling', () => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet();
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  test('ends a queued command unstarted, and the others run', async () => {
    const session = await stack.fleet.session('in-line');
    const first = await session.submit('until [ -e go ]; do sleep 0.02; done; echo first');
    const second = await session.submit('echo second');
    const third = await session.submit('echo third');
    expect(await second.cancel('not needed')).toBe(true);
    expect(await second.result()).toEqual(
      expectedResult(
        'in-line',
        stopped('cancellation', 'cancelled', {
          hostId: null,
          shell: { state: 'kept', epoch: 0 },
          cancelReason: 'not needed',
        }),
      ),
    );
    const other = await stack.fleet.session('in-line');
    const write = other.files.write('/workspace/go', '', { ordered: true });
    // An ordered write is queued like a command.
    await until(
      () => session.info(),
      ({ queuedCommands }) => queuedCommands === 2,
    );
    expect(await first.cancel()).toBe(true);
    expect((await first.result()).outcome).toBe('cancellation');
    expect(await third.result()).toEqual(expectedResult('in-line', { stdout: 'third\n' }));
    await write;
  });

  test('cancels a command once when it is called a hundred times', async () => {
    const session = await stack.fleet.session('hundred');
    const command = await session.submit('sleep 4321');
    await until(
      () => session.info(),
      ({ state }) => state === 'busy',
    );
    const answers = await Promise.all(Array.from({ length: 100 }, () => command.cancel()));
    expect(answers).toContain(true);
    expect(await command.result()).toEqual(
      expectedResult('hundred', stopped('cancellation', 'cancelled', { cancelReason: 'cancelled by its caller' })),
    );
    const types: string[] = [];
    await session.close();
    for await (const { type, commandId } of session.events()) if (commandId === command.id) types.push(type);
    expect(types).toEqual(['command.accepted', 'command.started', 'command.completed']);
  });

  test('works by id from another process; an abort only ends the wait for the Result', async () => {
    const session = await stack.fleet.session('by-id');
    const leave = new AbortController();
    const command = await session.submit('until [ -e go ]; do sleep 0.02; done; echo went');
    const waiting = command.result({ signal: leave.signal });
    leave.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
    expect(
      (await session.info()).queuedCommands + ((await session.info()).runningCommandId === undefined ? 0 : 1),
    ).toBe(1);
    const other = await stack.connect();
    const found = await other.command(command.id);
    expect({ id: found.id, sessionId: found.sessionId }).toEqual({ id: command.id, sessionId: 'by-id' });
    expect(await found.cancel()).toBe(true);
    const results = [await found.result(), await command.result()];
    expect(results[0]).toEqual(results[1]);
    expect(results[0]?.outcome).toBe('cancellation');
  });
});
