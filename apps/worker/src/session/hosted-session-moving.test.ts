import { abortable } from '@shellfleet/concurrency';
import { ShellfleetError } from '@shellfleet/protocol';
import pLimit from 'p-limit';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { FakeSandbox } from '../../test-support/fake-sandbox.ts';
import { adoptable, open, outcomes, serve } from '../../test-support/session-stage.ts';
import { FencedOff } from '../shell/keeper-connection.ts';

vi.mock('@shellfleet/mailbox', async (original) =>
  (await import('../../test-support/staged-mailbox.ts')).inMemory(await original<object>()),
);
const stage = vi.hoisted(() => ({ fencedOff: false, isUnreached: false, dials: 0 }));
vi.mock('../shell/connect-shell.ts', () => ({
  connectShell: async (sandbox: FakeSandbox, { signal }: { signal?: AbortSignal }) => {
    stage.dials += 1;
    if (stage.fencedOff) throw new FencedOff(9);
    if (stage.isUnreached) await abortable(new Promise(() => {}), signal);
    return sandbox.keeper.connect();
  },
}));

beforeEach(() => Object.assign(stage, { fencedOff: false, isUnreached: false, dials: 0 }));

const MOVABLE = { policy: { type: 'kubernetes' } } as const;

/** Serves a session, whose shell any worker can reach, until it runs the entry `a`. */
async function openRunning() {
  const it = open(MOVABLE);
  it.mailbox.submit({ id: 'a', script: 'hold' });
  const served = serve(it);
  await expect.poll(() => it.keeper()?.begun).toContain('a');
  return { it, served };
}

/** Returns a session that ran `a` under another host, in a sandbox that any worker can reach. */
function openLeft() {
  const it = open(MOVABLE);
  const sandbox = adoptable(it, { id: 'a', host: 'host-2' });
  it.mailbox.shell = { host: 'host-2', sandbox: sandbox.id };
  it.sandboxes.made.push(sandbox);
  return { it, sandbox };
}

describe('a session whose shell any worker can reach (SESSION-6)', () => {
  test('is left with what runs when its worker stops, and put back in its place', async () => {
    const { it, served } = await openRunning();
    it.session.stop('hand-over');
    expect(await served).toBe('ended');
    expect([it.mailbox.finished, it.sandboxes.made[0]?.removed, it.lease.ended]).toEqual([[], false, true]);
    expect([it.jobs.putBack.mock.calls.length, it.jobs.remove.mock.calls.length]).toEqual([1, 0]);
    expect(it.keeper().stops).toEqual([]);
  });

  test('is left, and nothing of it is stored, when its lease is lost', async () => {
    const { it, served } = await openRunning();
    it.lease.lose();
    expect(await served).toBe('ended');
    expect([it.mailbox.finished, it.sandboxes.made[0]?.removed]).toEqual([[], false]);
    expect(it.jobs.putBack).not.toHaveBeenCalled();
    expect(it.keeper().stops).toEqual([]);
  });

  test('is left when another worker has claimed its keeper', async () => {
    const { it, served } = await openRunning();
    stage.fencedOff = true;
    it.keeper().breakConnection();
    expect(await served).toBe('ended');
    expect([it.mailbox.finished, it.sandboxes.made[0]?.removed]).toEqual([[], false]);
  });

  test('keeps a silent sandbox until the lease is held', async () => {
    const { it } = await openRunning();
    it.lease.isHeld = false;
    vi.spyOn(it.keeper(), 'connect').mockImplementation(() => {
      throw new Error('no answer');
    });
    it.keeper().breakConnection();
    await new Promise((resolve) => setTimeout(resolve, 800));
    expect([it.mailbox.finished, it.sandboxes.made[0]?.removed]).toEqual([[], false]);
    it.lease.isHeld = true;
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a error']);
    expect(it.sandboxes.made[0]?.removed).toBe(true);
  });

  test('is closed, not left, when a close comes before the stop', async () => {
    const { it, served } = await openRunning();
    it.mailbox.phase = 'closing';
    it.session.closeGeneration('one');
    it.session.stop('hand-over');
    expect(await served).toBe('ended');
    expect(outcomes(it.mailbox)).toEqual(['a cancellation']);
    expect([it.sandboxes.made[0]?.removed, it.mailbox.released]).toEqual([true, 'queued']);
  });
});

describe('an idle session whose shell any worker can reach', () => {
  /** Serves a session that waits for its next entry, and breaks its connection. */
  async function openBroken({ isUnreached = false } = {}) {
    const it = open(MOVABLE);
    it.mailbox.submit({ id: 'a', script: 'true' });
    const served = serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    stage.isUnreached = isUnreached;
    it.keeper().breakConnection();
    await expect.poll(() => stage.dials).toBe(2);
    return { it, served };
  }

  test('keeps its shell when the connection breaks', async () => {
    const { it } = await openBroken();
    it.mailbox.submit({ id: 'b', script: 'true' });
    it.session.wakeUp();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success']);
    expect([it.mailbox.events, it.sandboxes.made.length]).toEqual([['session.opened'], 1]);
  });

  test('is closed while its keeper cannot be reached', async () => {
    const { it, served } = await openBroken({ isUnreached: true });
    it.mailbox.phase = 'closing';
    it.session.closeGeneration('one');
    expect(await served).toBe('ended');
    expect([it.sandboxes.made[0]?.removed, it.mailbox.released]).toEqual([true, 'queued']);
  });
});

describe('a session that its worker loses or leaves while a keeper cannot be reached', () => {
  test('is lost at once while it is adopted, and nothing is written', async () => {
    stage.isUnreached = true;
    const { it, sandbox } = openLeft();
    const served = serve(it);
    await expect.poll(() => stage.dials).toBe(1);
    it.lease.lose();
    expect(await served).toBe('ended');
    expect([it.mailbox.events, it.mailbox.finished, sandbox.removed]).toEqual([[], [], false]);
  });

  test('is put back at once while it is adopted, when its worker stops', async () => {
    stage.isUnreached = true;
    const { it, sandbox } = openLeft();
    const served = serve(it);
    await expect.poll(() => stage.dials).toBe(1);
    it.session.stop('hand-over');
    expect(await served).toBe('ended');
    expect([it.mailbox.events, it.jobs.putBack.mock.calls.length, sandbox.removed]).toEqual([[], 1, false]);
  });

  test('is lost at once while it is connected again', async () => {
    const { it, served } = await openRunning();
    stage.isUnreached = true;
    it.keeper().breakConnection();
    await expect.poll(() => stage.dials).toBe(2);
    it.lease.lose();
    expect(await served).toBe('ended');
    expect([it.mailbox.finished, it.sandboxes.made[0]?.removed]).toEqual([[], false]);
  });

  test('removes the sandbox that it opens, which no other owner can know of', async () => {
    stage.isUnreached = true;
    const it = open(MOVABLE);
    it.mailbox.submit({ id: 'a', script: 'true' });
    const served = serve(it);
    await expect.poll(() => stage.dials).toBe(1);
    it.lease.lose();
    expect(await served).toBe('ended');
    expect(it.sandboxes.made.map(({ removed }) => removed)).toEqual([true]);
  });
});

describe('a session that fails, and whose shell any worker can reach', () => {
  test('leaves its shell to the next attempt', async () => {
    const { it, served } = await openRunning();
    const { functions } = it.mailbox;
    const finish = () => Promise.reject(new Error('not expected'));
    vi.spyOn(it.mailbox, 'functions', 'get').mockReturnValue({ ...functions, finish });
    it.keeper().end();
    expect(await served).toBe('failed');
    expect([it.sandboxes.made[0]?.removed, it.lease.ended]).toEqual([false, true]);
  });

  test('ends its lease while the worker stops', async () => {
    const it = open(MOVABLE);
    it.jobs.acquire = () => {
      it.session.stop('hand-over');
      return Promise.reject(new Error('not expected'));
    };
    expect(await serve(it)).toBe('failed');
    expect(it.lease.ended).toBe(true);
  });
});

describe('the adoption of a shell that another worker opened', () => {
  test('resumes the entry that runs there', async () => {
    const { it, sandbox } = openLeft();
    sandbox.keeper.begin('a');
    void serve(it);
    await expect.poll(() => it.mailbox.events).toEqual(['session.adopted']);
    sandbox.keeper.end();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    expect([sandbox.keeper.begun, sandbox.removed]).toEqual([['a'], false]);
  });

  test('starts an entry that was started in Redis but never reached the keeper', async () => {
    const { it, sandbox } = openLeft();
    void serve(it);
    await expect.poll(() => sandbox.keeper.begun).toEqual(['a']);
    sandbox.keeper.end();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
  });

  test('loses an entry whose sandbox is gone, without blaming the host', async () => {
    const { it, sandbox } = openLeft();
    sandbox.removed = true;
    void serve(it);
    await expect.poll(() => it.mailbox.finished).toMatchObject([{ id: 'a', outcome: 'lost' }]);
    expect(it.mailbox.finished[0]?.result).toMatchObject({ reason: 'container-removed' });
    expect(it.mailbox.events).toEqual(['session.lost']);
  });

  test('is left to a worker that has the key of its sandbox', async () => {
    const { it, sandbox } = openLeft();
    sandbox.keeper.begin('a');
    it.sandboxes.unreachable = new ShellfleetError('SEAL_KEY_UNKNOWN', 'made under another key');
    expect(await serve(it)).toBe('ended');
    expect([it.jobs.putBack.mock.calls.length, it.lease.ended, it.mailbox.finished]).toEqual([1, true, []]);
    expect([it.mailbox.events, sandbox.removed]).toEqual([[], false]);
  });

  test('waits while it cannot be known whether the shell lives', async () => {
    const { it, sandbox } = openLeft();
    sandbox.keeper.begin('a');
    it.sandboxes.unreachable = new Error('the API server is away');
    const served = serve(it);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([it.mailbox.events, it.mailbox.finished]).toEqual([[], []]);
    it.session.stop('hand-over');
    expect(await served).toBe('ended');
    expect([it.mailbox.finished, it.jobs.putBack.mock.calls.length]).toEqual([[], 1]);
  });

  test('counts as begun while the shell is looked for', async () => {
    const { it } = openLeft();
    it.sandboxes.unreachable = new Error('the API server is away');
    const served = serve(it);
    await it.session.begun;
    it.session.stop('hand-over');
    expect(await served).toBe('ended');
  });
});

describe('a session that waits for its turn to open a Pod', () => {
  test('ends at once when it is closed, and creates none when its turn comes', async () => {
    const limit = pLimit(1);
    const earlier = Promise.withResolvers<void>();
    const opening = limit(() => earlier.promise);
    const it = open(MOVABLE, { limitOpening: (_policy, work) => limit(work) });
    it.mailbox.submit({ id: 'a', script: 'true' });
    const served = serve(it);
    await expect.poll(() => limit.pendingCount).toBe(1);
    it.mailbox.phase = 'closing';
    it.session.closeGeneration('one');
    expect(await served).toBe('ended');
    earlier.resolve();
    await opening;
    await expect.poll(() => limit.activeCount + limit.pendingCount).toBe(0);
    expect([it.sandboxes.made, it.mailbox.released]).toEqual([[], 'queued']);
  });
});
