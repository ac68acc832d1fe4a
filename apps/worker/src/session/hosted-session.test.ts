import { compileOperatorRules } from '@shellfleet/policy';
import { describe, expect, test, vi } from 'vitest';
import type { FakeSandbox } from '../../test-support/fake-sandbox.ts';
import { adoptable, open, outcomes, running, serve } from '../../test-support/session-stage.ts';
import { ANYONE_SUBMITS, createAdmission } from '../admission/create-admission.ts';
import { decideByRules } from '../admission/decide-by-rules.ts';

vi.mock('@shellfleet/mailbox', async (original) =>
  (await import('../../test-support/staged-mailbox.ts')).inMemory(await original<object>()),
);
vi.mock('../shell/connect-shell.ts', () => ({
  connectShell: async (sandbox: FakeSandbox) => sandbox.keeper.connect(),
}));

describe('a session on its host', () => {
  test('runs entries in order, and takes each when the previous one ends', async () => {
    const it = open();
    for (const id of ['a', 'b', 'c']) it.mailbox.submit({ id, script: 'true' });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success', 'c success']);
    expect(it.sandboxes.made).toHaveLength(1);
    // The first begun entry is the preparation of the shell.
    expect(it.keeper().begun.slice(1)).toEqual(['a', 'b', 'c']);
    expect(it.mailbox.events).toEqual(['session.opened']);
    expect(it.mailbox.takes).toBe(1);
  });

  test('costs one script per command without rules, approval and keys (ADMIT-2)', async () => {
    const rules = decideByRules({ rules: compileOperatorRules([]) }, { unchecked: [], onReported: () => {} });
    const answers = { find: () => Promise.reject(new Error('nothing is asked')) };
    const it = open({}, { admission: createAdmission({ signatures: ANYONE_SUBMITS, rules, answers }) });
    for (const id of ['a', 'b', 'c']) it.mailbox.submit({ id, script: 'rm -rf /' });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success', 'c success']);
    const { calls } = it.mailbox;
    expect(calls.slice(calls.indexOf('take'))).toEqual(['take', 'finish', 'finish', 'finish']);
  });

  test('takes no entry from an empty mailbox until a wake-up arrives', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    it.mailbox.submit({ id: 'b', script: 'true' });
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(it.mailbox.takes).toBe(1);
    it.session.wakeUp();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success']);
  });
});

describe('a session whose lease or shell is not ready (SESSION-2)', () => {
  test('starts the waiting entry only after a renewal when the lease lapsed during a command', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    it.mailbox.submit({ id: 'b', script: 'true' });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.lease.isHeld = false;
    it.keeper().end();
    await expect.poll(() => it.mailbox.finished).toMatchObject([{ id: 'a', takeNext: false }]);
    it.session.wakeUp();
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(it.mailbox.takes).toBe(1);
    it.lease.isHeld = true;
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success']);
  });

  test('begins an entry only after a renewal if the reply to its start came late', async () => {
    const it = open();
    const { functions } = it.mailbox;
    let lapses = true;
    const take: typeof functions.take = async (...args) => {
      const taken = await functions.take(...args);
      if (lapses) it.lease.isHeld = false;
      lapses = false;
      return taken;
    };
    vi.spyOn(it.mailbox, 'functions', 'get').mockReturnValue({ ...functions, take });
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => it.mailbox.takes).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(it.keeper().begun).not.toContain('a');
    it.lease.isHeld = true;
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);

    lapses = true;
    it.mailbox.submit({ id: 'b', script: 'true' });
    it.session.wakeUp();
    await expect.poll(() => it.mailbox.takes).toBe(2);
    const { begun } = it.keeper();
    it.lease.lose();
    await Promise.all(running);
    expect([begun.includes('b'), outcomes(it.mailbox)]).toEqual([false, ['a success']]);
  });

  test('takes nothing when the lease ended while the shell was opened', async () => {
    const it = open({ startupCommands: ['hold on'] });
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun.length).toBe(2);
    it.lease.isHeld = false;
    it.keeper().end();
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(it.mailbox.takes).toBe(0);
    it.lease.isHeld = true;
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
  });

  test('fails the waiting entry when a startup command failed', async () => {
    const it = open({ startupCommands: ['hold on'] });
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun.length).toBe(2);
    it.keeper().end({ exitCode: 7 });
    await expect
      .poll(() => it.mailbox.finished)
      .toMatchObject([{ id: 'a', outcome: 'error', result: { error: { code: 'SESSION_START_FAILED' } } }]);
    expect(it.mailbox.takes).toBe(0);
    expect(it.sandboxes.made[0]?.removed).toBe(true);
  });
});

describe('a command whose shell dies before its start arrives (EPOCH-2)', () => {
  test('runs on the fresh shell after its startup commands, and its Result reports the loss', async () => {
    const it = open({ startupCommands: ['true'] });
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    it.keeper().shellNumber = 2;
    it.mailbox.submit({ id: 'b', script: 'true' });
    it.session.wakeUp();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success']);
    const [setUp, startup, a, setUpAgain, startupAgain, b] = it.keeper().begun;
    expect([a, b]).toEqual(['a', 'b']);
    expect(new Set([setUp, startup, setUpAgain, startupAgain]).size).toBe(4);
    expect(it.mailbox.finished[1]).toMatchObject({ result: { shell: { state: 'lost', epoch: 2 } } });
  });

  test('begins on the fresh shell only while the lease is held', async () => {
    const it = open({ startupCommands: ['hold on'] });
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun.length).toBe(2);
    it.keeper().end();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    it.keeper().shellNumber = 2;
    it.mailbox.submit({ id: 'b', script: 'true' });
    it.session.wakeUp();
    // The fresh shell has its variables, and its startup command is running.
    await expect.poll(() => it.keeper().begun.length).toBe(5);
    it.lease.isHeld = false;
    it.keeper().end();
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(it.keeper().begun).not.toContain('b');
    it.lease.isHeld = true;
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success']);
  });

  test('has not run when the fresh shell cannot be prepared', async () => {
    const it = open({ startupCommands: ['hold on'] });
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun.length).toBe(2);
    it.keeper().end();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    const keeper = it.keeper();
    keeper.shellNumber = 2;
    it.mailbox.submit({ id: 'b', script: 'true' });
    it.session.wakeUp();
    await expect.poll(() => keeper.begun.length).toBe(5);
    keeper.end({ exitCode: 7 });
    await expect
      .poll(() => it.mailbox.finished[1])
      .toMatchObject({ id: 'b', outcome: 'error', result: { error: { code: 'SESSION_START_FAILED' } } });
    expect(keeper.begun).not.toContain('b');
  });
});

describe('a session while its host takes nothing new (SESSION-5)', () => {
  test('leaves without a living shell, and keeps its entries and its place in the queue', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'true' });
    it.host.takesNew = false;
    expect(await serve(it)).toBe('ended');
    expect([it.mailbox.waiting.length, it.mailbox.released, it.sandboxes.made]).toEqual([1, 'queued', []]);
    expect([it.jobs.putBack.mock.calls.length, it.jobs.remove.mock.calls.length]).toEqual([1, 0]);
    expect(it.lease.ended).toBe(true);
  });

  test.each<[string, (it: ReturnType<typeof open>) => void]>([
    ['the host drains', (it) => it.session.drain()],
    ['the worker stops', (it) => it.session.stop('hand-over')],
  ])('drops a shell in preparation and leaves when %s', async (_when, begin) => {
    const it = open({ startupCommands: ['hold on'] });
    it.mailbox.submit({ id: 'a', script: 'true' });
    const served = serve(it);
    await expect.poll(() => it.keeper()?.begun.length).toBe(2);
    it.host.takesNew = false;
    begin(it);
    expect(await served).toBe('ended');
    expect([it.mailbox.waiting.length, it.sandboxes.made[0]?.removed]).toEqual([1, true]);
    expect(it.jobs.putBack).toHaveBeenCalledTimes(1);
  });

  test('stays with a living shell and runs its commands', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.host.takesNew = false;
    it.session.drain();
    it.mailbox.submit({ id: 'b', script: 'true' });
    it.keeper().end();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success']);
    expect(it.jobs.putBack).not.toHaveBeenCalled();
  });

  test('opens its shell after all when the host takes sessions again', async () => {
    const it = open({ startupCommands: ['hold on'] });
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun.length).toBe(2);
    it.session.drain();
    await expect.poll(() => it.sandboxes.made.length).toBe(2);
    await expect.poll(() => it.keeper().begun.length).toBe(2);
    it.keeper().end();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
  });
});

describe('a sandbox that is lost while a command runs', () => {
  test.each([
    ['an idempotent command runs again, and its Result counts the starts', 'idempotent', 1, 'success', 2, 2],
    ['an idempotent command is started three times in all', 'idempotent', 3, 'error', 3, 3],
    ['another command is not run again', undefined, 1, 'error', undefined, 1],
  ] as const)('%s', async (_title, retry, losses, outcome, attempts, sandboxes) => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold', ...(retry && { retry }) });
    void serve(it);
    for (let loss = 1; loss <= losses; loss++) {
      await expect.poll(() => it.sandboxes.made.length).toBe(loss);
      await expect.poll(() => it.keeper()?.begun).toContain('a');
      it.sandboxes.made.at(-1)?.die('removed');
    }
    if (outcome === 'success') {
      await expect.poll(() => it.sandboxes.made.length).toBe(losses + 1);
      await expect.poll(() => it.keeper().begun).toContain('a');
      it.keeper().end();
    }
    await expect.poll(() => outcomes(it.mailbox)).toEqual([`a ${outcome}`]);
    expect(it.mailbox.finished[0]?.result.attempts).toBe(attempts);
    expect(it.sandboxes.made).toHaveLength(sandboxes);
  });

  test.each(['ran out of memory', 'was cancelled'] as const)(
    'does not rerun an idempotent command that %s',
    async (what) => {
      const it = open();
      it.mailbox.submit({ id: 'a', script: 'hold', retry: 'idempotent' });
      void serve(it);
      await expect.poll(() => it.keeper()?.begun).toContain('a');
      if (what === 'was cancelled') {
        it.keeper().ignoresStops = true;
        it.session.cancel('one', 'a');
        await expect.poll(() => it.keeper().stops).toContain('a');
      }
      it.sandboxes.made.at(-1)?.die(what === 'was cancelled' ? 'removed' : 'oom');
      await expect.poll(() => outcomes(it.mailbox)).toEqual(['a error']);
      expect(it.sandboxes.made).toHaveLength(1);
    },
  );
});

describe('an entry that ran when the worker died', () => {
  test.each([
    ['runs again in a fresh sandbox after its startup commands', 0, 'a success'],
    ['is lost when a startup command fails', 7, 'a lost'],
  ])('%s if it is idempotent and its sandbox is gone', async (_title, exitCode, outcome) => {
    const it = open({ startupCommands: ['hold on'] });
    adoptable(it, { id: 'a', retry: 'idempotent' });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun.length).toBe(2);
    it.keeper().end({ exitCode });
    if (exitCode === 0) {
      await expect.poll(() => it.keeper().begun).toContain('a');
      it.keeper().end();
    }
    await expect.poll(() => outcomes(it.mailbox)).toEqual([outcome]);
  });

  test('is lost if it is not idempotent, and the waiting entry runs', async () => {
    const it = open();
    adoptable(it, { id: 'a' });
    it.mailbox.submit({ id: 'b', script: 'true' });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a lost', 'b success']);
  });
});

describe('cancel', () => {
  test('stops an entry that runs', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.session.cancel('one', 'a');
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a cancellation']);
  });

  test('stops an entry at its start when the cancel came first', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    it.session.cancel('one', 'a');
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a cancellation']);
    expect(it.keeper().stops).toEqual(['a']);
  });

  test('stops the running entry of a generation that closed before its adoption', async () => {
    const it = open();
    const sandbox = adoptable(it, { id: 'a' });
    sandbox.keeper.begin('a');
    it.session.closeGeneration('one');
    expect(await serve(it, sandbox)).toBe('ended');
    expect([outcomes(it.mailbox), it.mailbox.released]).toEqual([['a cancellation'], 'queued']);
  });

  test('ignores calls for an earlier generation', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    it.session.closeGeneration('zero');
    void serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.session.closeGeneration('zero');
    it.session.cancel('zero', 'a');
    await new Promise((resolve) => setImmediate(resolve));
    expect(it.keeper().stops).toEqual([]);
    it.keeper().end();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
  });

  test('stops a command at the adoption if it was cancelled while no worker ran', async () => {
    const it = open();
    const sandbox = adoptable(it, { id: 'a', cancelReason: 'caller' });
    sandbox.keeper.begin('a');
    void serve(it, sandbox);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a cancellation']);
  });
});

describe('an owner that was fenced off (SESSION-1)', () => {
  test('ends the session and its sandbox at the first refused write', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    it.mailbox.submit({ id: 'b', script: 'true' });
    const served = serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.mailbox.loseTo(9);
    it.keeper().end();
    expect(await served).toBe('ended');
    expect([it.mailbox.finished, it.sandboxes.made[0]?.removed, it.lease.ended]).toEqual([[], true, true]);
    expect(it.jobs.remove).not.toHaveBeenCalled();
  });

  test('changes nothing in a session that another host adopted during the stop', async () => {
    const it = open({ shutdownCommands: ['true'] });
    it.mailbox.submit({ id: 'a', script: 'true' });
    const served = serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    it.mailbox.loseTo(9);
    it.session.stop('end');
    expect(await served).toBe('ended');
    expect([it.keeper().begun.at(-1), it.sandboxes.made[0]?.removed]).toEqual(['a', true]);
    expect(it.jobs.remove).not.toHaveBeenCalled();
  });

  test('ends the sandbox at once when the lease is lost during a command', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    const served = serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.mailbox.loseTo(9);
    it.lease.lose();
    expect(await served).toBe('ended');
    expect([it.mailbox.finished, it.sandboxes.made[0]?.removed]).toEqual([[], true]);
  });
});
