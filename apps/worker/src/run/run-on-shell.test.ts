import { type ResolvedSessionSpec, sessionKeys, sessionSpecSchema } from '@shellfleet/protocol';
import { pino } from 'pino';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeSandbox } from '../../test-support/fake-sandbox.ts';
import { TenantUses } from '../host/tenant-use.ts';
import { connectShell } from '../shell/connect-shell.ts';
import { SessionShell } from '../shell/session-shell.ts';
import type { CommandStart } from '../shell/shell.ts';
import { EntryRun } from './entry-run.ts';
import { runOnShell } from './run-on-shell.ts';

// The session's shell is real; only the way to its keeper is replaced.
vi.mock('../shell/connect-shell.ts', () => ({ connectShell: vi.fn() }));

const ref = { namespace: 'ns', tenant: 't', session: 's' };
const spec: ResolvedSessionSpec = sessionSpecSchema.parse({});
const HOLD: CommandStart = { type: 'command', entryId: '01HOLD', script: 'hold', killGraceMs: 1_500 };

beforeEach(() => {
  vi.mocked(connectShell).mockReset();
  vi.mocked(connectShell).mockImplementation(async (sandbox) => (sandbox as FakeSandbox).keeper.connect());
});

async function openShell() {
  const sandbox = new FakeSandbox('sandbox-1', ref);
  const deps = {
    ...{ ref, spec, fence: 1, logger: pino({ level: 'silent' }) },
    ...{ redaction: undefined as never, sandboxes: undefined as never, limitOpening: undefined as never },
    uses: new TenantUses(),
    pools: undefined as never,
    onLate() {},
    onAbandoned() {},
    onGone() {},
    onConnected: async () => {},
  };
  const shell = new SessionShell(deps, { epoch: 1, reportedEpoch: 1, lossReason: 'gone' });
  await shell.adopt(sandbox, 0, 1);
  const entryRun = new EntryRun({ offsets: { stdout: 0, stderr: 0 }, seq: 0 } as never, 'start', () =>
    shell.makeReady(new AbortController().signal).then(() => true),
  );
  const cancel = () => entryRun.cancel();
  let received = '';
  const run = (from: 'start' | 'resume', start = HOLD) =>
    runOnShell(
      start,
      {
        from,
        makeShellReady: entryRun.makeShellReady,
        get isCancelled() {
          return entryRun.isCancelled;
        },
        onCancel: (listener) => entryRun.onCancel(listener),
      },
      { owner: { keys: sessionKeys('ns', 't', 's') } as never, spec, shell, signal: new AbortController().signal },
      {
        onOutput: (_stream, _offset, bytes) => {
          received += Buffer.from(bytes).toString();
        },
        received: () => ({ stdout: received.length, stderr: 0 }),
      },
    );
  return { sandbox, keeper: sandbox.keeper, shell, cancel, run, received: () => received };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('an entry that is already cancelled', () => {
  test('is stopped in the step that starts it', async () => {
    const { keeper, cancel, run } = await openShell();
    cancel();
    expect(await run('start')).toMatchObject({ type: 'ended', end: { reason: 'cancelled' } });
    expect(keeper.stops).toEqual([HOLD.entryId]);
  });

  test('is stopped in the step that resumes it', async () => {
    const { keeper, cancel, run, shell } = await openShell();
    keeper.begin(HOLD.entryId);
    await shell.reconnect();
    cancel();
    expect(await run('resume')).toMatchObject({ type: 'ended', end: { reason: 'cancelled' } });
    expect(keeper.stops).toEqual([HOLD.entryId]);
  });
});

describe('an entry on the shell', () => {
  test('stops a cancelled entry while it runs, on every connection', async () => {
    const { keeper, cancel, run } = await openShell();
    keeper.ignoresStops = true;
    const running = run('start');
    await settle();
    expect(keeper.stops).toEqual([]);
    cancel();
    await settle();
    expect(keeper.stops).toHaveLength(1);
    for (const stops of [2, 3]) {
      keeper.print('x');
      keeper.breakConnection();
      await expect.poll(() => keeper.stops.length).toBe(stops);
    }
    keeper.end();
    await running;
  });

  test('connects again after a broken connection, and continues the output', async () => {
    const { keeper, run, received } = await openShell();
    const running = run('start');
    await settle();
    keeper.print('one ');
    keeper.breakConnection();
    keeper.print('two ');
    await settle();
    keeper.print('three');
    keeper.end({ exitCode: 3 });
    expect(await running).toMatchObject({ type: 'ended', end: { exitCode: 3 } });
    expect(received()).toBe('one two three');
    expect(keeper.begun).toEqual([HOLD.entryId]);
  });

  test('sends a start again if it never reached the keeper', async () => {
    const { keeper, run } = await openShell();
    keeper.losesNextStart = true;
    const running = run('start');
    await settle();
    expect(keeper.begun).toEqual([]);
    keeper.breakConnection();
    await expect.poll(() => keeper.begun).toEqual([HOLD.entryId]);
    keeper.end();
    expect(await running).toMatchObject({ type: 'ended' });
  });

  test('follows an entry that the keeper has begun, without beginning it again', async () => {
    const { keeper, run } = await openShell();
    const first = run('start');
    await settle();
    keeper.print('out');
    keeper.end();
    await first;
    expect(await run('start')).toMatchObject({ type: 'ended', end: { totals: { stdout: 3 } } });
    expect(keeper.begun).toEqual([HOLD.entryId]);
  });

  test('reports an entry as lost if it began on an earlier shell', async () => {
    const { keeper, run } = await openShell();
    keeper.begun.push(HOLD.entryId);
    expect(await run('start')).toEqual({ type: 'lost' });
  });

  test("records that a fresh shell has replaced the entry's shell", async () => {
    const { keeper, run, shell } = await openShell();
    const running = run('start');
    await settle();
    keeper.shellNumber = 2;
    keeper.end({ shell: { state: 'lost', shellNumber: 2, reason: 'it was killed' } });
    await running;
    expect([shell.epoch, shell.ready, shell.lossReason]).toEqual([2, false, 'it was killed']);
  });

  test.each([
    ['oom', { error: { code: 'CONTAINER_LOST', context: { reason: 'oom' } }, reason: 'oom' }],
    ['removed', { error: { code: 'CONTAINER_LOST', context: { reason: 'removed' } }, reason: 'container-removed' }],
  ] as const)("ends the entry with the reason of its sandbox's end (%s)", async (reason, expected) => {
    const { sandbox, run } = await openShell();
    const running = run('start');
    await settle();
    sandbox.die(reason);
    expect(await running).toMatchObject({ type: 'failed', ...expected });
  });
});

describe('an unresponsive shell', () => {
  test('loses its sandbox when the keeper cannot be reached', async () => {
    const { sandbox, keeper, shell, run } = await openShell();
    const running = run('start');
    await settle();
    vi.mocked(connectShell).mockRejectedValue(new Error('no answer'));
    keeper.breakConnection();
    expect(await running).toMatchObject({ type: 'failed', error: { code: 'SHELL_UNRESPONSIVE' } });
    expect(sandbox.removed).toBe(true);
    await shell.abandon();
    expect(shell.lossReason).toBe('its keeper did not answer');
  });

  test('loses its sandbox when its connections break repeatedly without output', async () => {
    const { sandbox, keeper, run } = await openShell();
    vi.mocked(connectShell).mockImplementation(async () => {
      const connection = keeper.connect();
      setImmediate(() => keeper.breakConnection());
      return connection;
    });
    const running = run('start');
    await settle();
    keeper.breakConnection();
    expect(await running).toMatchObject({ type: 'failed', error: { code: 'SHELL_UNRESPONSIVE' } });
    expect(sandbox.removed).toBe(true);
  });
});
