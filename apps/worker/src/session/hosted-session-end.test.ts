import type { SessionJob } from '@shellfleet/placement';
import type { SessionSpec } from '@shellfleet/protocol';
import { describe, expect, test, vi } from 'vitest';
import type { FakeSandbox } from '../../test-support/fake-sandbox.ts';
import { adoptable, classOf, jobFor, MARK, open, outcomes, serve } from '../../test-support/session-stage.ts';

vi.mock('@shellfleet/mailbox', async (original) =>
  (await import('../../test-support/staged-mailbox.ts')).inMemory(await original<object>()),
);
vi.mock('../shell/connect-shell.ts', () => ({
  connectShell: async (sandbox: FakeSandbox) => sandbox.keeper.connect(),
}));

describe('the end of a session', () => {
  test('leaves a handed-over shell alive, with lease, job and waiting entries', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    it.mailbox.submit({ id: 'b', script: 'true' });
    const served = serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.session.stop('hand-over');
    it.keeper().end();
    expect(await served).toBe('ended');
    expect(it.mailbox.finished).toMatchObject([{ id: 'a', takeNext: false }]);
    expect([it.sandboxes.made[0]?.removed, it.lease.ended, it.mailbox.released]).toEqual([false, false, undefined]);
    expect(it.jobs.remove).not.toHaveBeenCalled();
  });

  test('cancels the running entry and releases the session when the worker shuts down', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    const served = serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.session.stop('end');
    expect(await served).toBe('ended');
    expect(outcomes(it.mailbox)).toEqual(['a cancellation']);
    expect([it.sandboxes.made[0]?.removed, it.lease.ended, it.mailbox.released]).toEqual([true, true, 'lost']);
  });

  test('removes the sandbox after the grace if the keeper ignores the end', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    const served = serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.keeper().ignoresStops = true;
    it.session.stop('end');
    await it.session.discard();
    expect(await served).toBe('ended');
    expect([it.sandboxes.made[0]?.removed, it.mailbox.released]).toEqual([true, 'lost']);
  });

  test('ends the shell when a close follows a hand-over', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    const served = serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.session.stop('hand-over');
    it.mailbox.phase = 'closing';
    it.session.closeGeneration('one');
    expect(await served).toBe('ended');
    expect(outcomes(it.mailbox)).toEqual(['a cancellation']);
    expect([it.sandboxes.made[0]?.removed, it.mailbox.released]).toEqual([true, 'queued']);
    expect(it.jobs.remove).toHaveBeenCalled();
  });

  test('closes the session at the next look when the call of the close was lost', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'true' });
    const served = serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    it.mailbox.phase = 'closing';
    it.session.wakeUp();
    expect(await served).toBe('ended');
    expect(it.mailbox.released).toBe('queued');
  });

  test('gives up an idle session, but adds its job again after a late submit', async () => {
    const it = open({ idleTimeoutMs: 50 });
    it.mailbox.submit({ id: 'a', script: 'true' });
    it.jobs.remove.mockImplementation(async () => void it.mailbox.submit({ id: 'late', script: 'true' }));
    expect(await serve(it)).toBe('ended');
    expect(it.mailbox.released).toBe('lost');
    expect(it.jobs.ensure).toHaveBeenCalledTimes(1);
  });
});

describe('a job with data outside of the sealed spec', () => {
  const spec: SessionSpec = { priority: 2, labels: { team: 'build' } };
  const data = {
    ...{ generation: 'one', policy: 'docker' as const, priority: 2, labels: { team: 'build' } },
    sealedWith: MARK,
  };

  test.each<[string, Partial<SessionJob>, string]>([
    ['its policy was changed', { data: { ...data, policy: 'host' } }, 'policy'],
    ['its priority was changed', { data: { ...data, priority: 0 } }, 'priority'],
    ['its labels were changed', { data: { ...data, labels: {} } }, 'labels'],
    ['its data is not valid', { data: undefined as never }, 'data'],
    ['it waited in the queue of another policy', { placementClass: classOf('host') }, 'queue'],
    [
      'it was moved with its policy',
      { placementClass: classOf('host'), data: { ...data, policy: 'host' } },
      'queue, policy',
    ],
  ])('is refused when %s, and the waiting entries end with an error', async (_title, change, part) => {
    const it = open(spec, { job: { ...jobFor(spec), ...change }, offers: [classOf('docker'), classOf('host')] });
    for (const id of ['a', 'b']) it.mailbox.submit({ id, script: 'true' });
    expect(await serve(it)).toBe('ended');
    expect(outcomes(it.mailbox)).toEqual(['a error', 'b error']);
    expect(it.mailbox.finished[0]?.result).toMatchObject({
      error: {
        code: 'SESSION_SPEC_INVALID',
        message: expect.stringContaining(`in its ${part}, so nothing was run`),
      },
    });
    expect(it.sandboxes.made).toEqual([]);
    // The job is removed, so that no other host gets it.
    expect(it.mailbox.released).toBe('queued');
    expect(it.jobs.remove).toHaveBeenCalledTimes(1);
  });

  test('ends the sandbox of an earlier job when refused, and reports its entry lost', async () => {
    const it = open(spec, { job: { ...jobFor(spec), data: { ...data, priority: 0 } } });
    const found = adoptable(it, { id: 'ran' });
    it.mailbox.submit({ id: 'waits', script: 'true' });
    expect(await serve(it, found)).toBe('ended');
    expect(outcomes(it.mailbox)).toEqual(['ran lost', 'waits error']);
    expect(found.removed).toBe(true);
  });

  test('is accepted from an earlier generation with another priority', async () => {
    const it = open(spec, { job: { ...jobFor(spec), data: { ...data, generation: 'before', priority: 0 } } });
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
  });

  test('releases a session of a policy that this host no longer offers', async () => {
    const it = open({ policy: 'host', priority: 4 }, { offers: [classOf('docker')] });
    it.mailbox.submit({ id: 'waits', script: 'true' });
    expect(await serve(it)).toBe('ended');
    expect(outcomes(it.mailbox)).toEqual([]);
    expect(it.sandboxes.made).toEqual([]);
    expect(it.mailbox.released).toBe('queued');
    expect(it.jobs.ensure).toHaveBeenCalledWith({
      tenant: 't',
      session: 's',
      data: { generation: 'one', policy: 'host', priority: 4, labels: {}, sealedWith: MARK },
    });
  });
});

describe('a session whose host lost its policy', () => {
  test('follows a running command to its end, and leaves the waiting entries', async () => {
    const it = open({ policy: 'host' }, { offers: [classOf('docker')] });
    const sandbox = adoptable(it, { id: 'runs' });
    sandbox.keeper.begin('runs');
    it.mailbox.submit({ id: 'waits', script: 'true' });
    const served = serve(it, sandbox);
    await expect.poll(() => it.session.running?.entry.id).toBe('runs');
    sandbox.keeper.end();
    expect(await served).toBe('ended');
    expect([outcomes(it.mailbox), it.mailbox.running]).toEqual([['runs success'], undefined]);
    expect(it.mailbox.waiting.map(({ id }) => id)).toEqual(['waits']);
  });
});

describe('an entry that this host began before Redis forgot it', () => {
  test.each([
    ['is lost', 'never', ['a', 'b'], ['x lost', 'b success']],
    ['runs again when it is idempotent', 'idempotent', ['a', 'x', 'b'], ['x success', 'b success']],
  ] as const)('%s, and what waits behind it runs', async (_title, retry, begun, after) => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    expect([...it.journal.begun]).toEqual(['a']);
    it.journal.begun.add('x');
    it.mailbox.submit({ id: 'x', script: 'true', ...(retry === 'idempotent' && { retry }) });
    it.mailbox.submit({ id: 'b', script: 'true' });
    it.session.wakeUp();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', ...after]);
    expect(it.keeper().begun.slice(1)).toEqual(begun);
  });

  test('is followed to its end when its keeper still runs it', async () => {
    const it = open();
    const sandbox = adoptable(it, { id: 'x' });
    sandbox.keeper.begin('x');
    it.journal.begun.add('x');
    // Redis came back as it was before the entry was taken.
    it.mailbox.waiting.push(it.mailbox.running!);
    it.mailbox.running = undefined;
    void serve(it, sandbox);
    await expect.poll(() => it.mailbox.running?.id).toBe('x');
    sandbox.keeper.end();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['x success']);
    expect(sandbox.keeper.begun).toEqual(['x']);
  });
});

describe('an entry whose start got no reply', () => {
  test('runs on a fresh shell when its own has died', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'true' });
    it.mailbox.submit({ id: 'b', script: 'true' });
    it.mailbox.onLostReply = () => it.sandboxes.made[0]?.die('removed');
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success']);
    expect(it.sandboxes.made.map(({ keeper }) => keeper.begun.slice(1))).toEqual([['a'], ['b']]);
  });
});
