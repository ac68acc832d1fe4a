import { type CarriedEntry, entryIdSchema } from '@shellfleet/protocol';
import { describe, expect, test, vi } from 'vitest';
import type { FakeSandbox } from '../../test-support/fake-sandbox.ts';
import { HOST, open, outcomes, serve } from '../../test-support/session-stage.ts';

vi.mock('@shellfleet/mailbox', async (original) =>
  (await import('../../test-support/staged-mailbox.ts')).inMemory(await original<object>()),
);
vi.mock('../shell/connect-shell.ts', () => ({
  connectShell: async (sandbox: FakeSandbox) => sandbox.keeper.connect(),
}));

const id = entryIdSchema.parse('01M83GJZ7TQZQ9XE36XT5S64QZ');

/** Returns an idle session, with a delegation: one command has run. */
async function openIdle() {
  const it = open();
  it.mailbox.submit({ id: 'before', script: 'true' });
  void serve(it);
  await expect.poll(() => outcomes(it.mailbox)).toEqual(['before success']);
  return it;
}

/** Starts an entry as `submit` does. Returns the entry that the wake-up carries. */
function startIn({ mailbox }: ReturnType<typeof open>, script = 'true'): CarriedEntry {
  const { payload } = mailbox.submit({ id, script });
  mailbox.running = { ...mailbox.waiting.pop()!, startedAt: 2, fence: mailbox.fence, host: HOST };
  const times = { acceptedAt: '1', startedAt: '2', fence: String(mailbox.fence) };
  return { id, payload, kind: 'command', inbox: '', retry: 'never', ...times };
}

describe('a session that delegates starts to `submit`', () => {
  test('runs an entry from a wake-up without a call to the mailbox before its end', async () => {
    const it = await openIdle();
    const { calls } = it.mailbox;
    calls.length = 0;
    it.session.wakeUp(startIn(it));
    await expect.poll(() => outcomes(it.mailbox)).toContain(`${id} success`);
    expect(calls).toEqual(['finish']);
  });

  test('finds an entry whose wake-up was lost, and runs it once', async () => {
    const it = await openIdle();
    startIn(it);
    it.session.wakeUp();
    await expect.poll(() => outcomes(it.mailbox)).toContain(`${id} success`);
    expect(it.keeper().begun.filter((begun) => begun === id)).toEqual([id]);
  });

  test('runs nothing again for a repeated or late wake-up', async () => {
    const it = await openIdle();
    const carried = startIn(it);
    it.session.wakeUp();
    await expect.poll(() => outcomes(it.mailbox)).toContain(`${id} success`);
    it.session.wakeUp(carried);
    it.session.wakeUp(carried);
    it.mailbox.submit({ id: 'after', script: 'true' });
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['before success', `${id} success`, 'after success']);
    expect(it.keeper().begun.filter((begun) => begun === id)).toEqual([id]);
  });

  test('renews a lease that may have ended before it begins an entry from a wake-up', async () => {
    const it = await openIdle();
    it.lease.isHeld = false;
    it.session.wakeUp(startIn(it));
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(it.keeper().begun).not.toContain(id);
    it.lease.isHeld = true;
    await expect.poll(() => outcomes(it.mailbox)).toContain(`${id} success`);
  });

  test('cancels the started entry when the session is closed before the wake-up', async () => {
    const it = await openIdle();
    const carried = startIn(it, 'hold');
    it.session.closeGeneration('one');
    it.session.wakeUp(carried);
    await expect.poll(() => outcomes(it.mailbox)).toContain(`${id} cancellation`);
  });

  test('cancels an entry that was started in its name when the worker ends', async () => {
    const it = await openIdle();
    startIn(it, 'hold');
    it.session.stop('end');
    await expect.poll(() => outcomes(it.mailbox)).toContain(`${id} cancellation`);
    expect(it.mailbox.calls).toContain('withdraw');
  });

  test('runs an entry that was started in its name before handing the shell over', async () => {
    const it = await openIdle();
    startIn(it);
    it.session.stop('hand-over');
    await expect.poll(() => outcomes(it.mailbox)).toContain(`${id} success`);
  });

  test.each([
    ['end', 'cancellation'],
    ['hand-over', 'success'],
  ] as const)('ends an entry that started while it gave up and the worker stopped (%s)', async (how, outcome) => {
    const it = open({ idleTimeoutMs: 50 });
    it.mailbox.submit({ id: 'before', script: 'true' });
    const { functions } = it.mailbox;
    const { withdraw } = functions;
    vi.spyOn(it.mailbox, 'functions', 'get').mockReturnValue({
      ...functions,
      withdraw: async (owner) => {
        if (!it.journal.begun.has(id) && it.mailbox.running === undefined && outcomes(it.mailbox).length === 1) {
          startIn(it, how === 'end' ? 'hold' : 'true');
          it.session.stop(how);
        }
        return withdraw(owner);
      },
    });
    const served = serve(it);
    expect(await served).toBe('ended');
    expect(outcomes(it.mailbox)).toEqual(['before success', `${id} ${outcome}`]);
  });
});
