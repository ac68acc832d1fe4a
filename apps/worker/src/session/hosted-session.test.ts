import {
  newSessionJob,
  type PlacementClass,
  placementClass,
  type SessionJob,
  type SessionJobs,
  toPlacement,
} from '@shellfleet/admission';
import { createSealer, createSealKey } from '@shellfleet/mailbox';
import { compileOperatorRules } from '@shellfleet/policy';
import { fleetKeys, type SessionSpec, sessionKeys, sessionSpecSchema } from '@shellfleet/protocol';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeMailbox } from '../../test-support/fake-mailbox.ts';
import { FakeSandbox, FakeSandboxes } from '../../test-support/fake-sandbox.ts';
import { ADMIT_EVERYTHING, type Admission } from '../admission/admission.ts';
import { ANYONE_SUBMITS, createAdmission } from '../admission/create-admission.ts';
import { judgeByRules } from '../admission/judge-by-rules.ts';
import { StartsUnderWay } from '../approvals/starts-under-way.ts';
import { NO_AUDIT } from '../audit/audit.ts';
import type { HostLog } from '../host-log/host-log.ts';
import type { BegunId, Journal } from '../journal/journal.ts';
import type { Lease } from '../lease/leases.ts';
import { RunningEntries } from '../run/running-entries.ts';
import { HostedSession } from './hosted-session.ts';

// A session with a mailbox, a lease and sandboxes in memory; everything between them is real.
const stage = vi.hoisted(() => ({ mailbox: undefined as FakeMailbox | undefined }));
vi.mock('@shellfleet/mailbox', async (original) => {
  const names = [
    'grant',
    'adopt',
    'announce',
    'peek',
    'take',
    'append',
    'rerun',
    'finish',
    'release',
    'withdraw',
  ] as const;
  const call =
    (name: (typeof names)[number]) =>
    (...args: unknown[]) => {
      stage.mailbox!.calls.push(name);
      return (stage.mailbox!.functions[name] as (...given: unknown[]) => unknown)(...args);
    };
  return {
    ...(await original<object>()),
    ...Object.fromEntries(names.map((name) => [name, call(name)])),
    notify: async () => {},
  };
});
vi.mock('../shell/connect-shell.ts', () => ({
  connectShell: async (sandbox: FakeSandbox) => sandbox.keeper.connect(),
}));

const HOST = 'host-1';
const keys = sessionKeys('ns', 't', 's');
const ref = { namespace: 'ns', tenant: 't', session: 's' };
const sealer = createSealer([createSealKey()]);
const MARK = `1.${sealer.keyIds[0]}`;
const classOf = (policy: 'docker' | 'host') => placementClass({ policy, sealedWith: MARK });

class FakeJournal implements Journal {
  readonly begun = new Set<string>();
  knows({ id }: BegunId): boolean {
    return this.begun.has(id);
  }
  record({ id }: BegunId): void {
    this.begun.add(id);
  }
  close(): void {}
}

class FakeLease implements Lease {
  readonly job: SessionJob = { ...ref, placementClass: 'docker' };
  isHeld = true;
  ended = false;
  lose = () => {};
  held(): boolean {
    return this.isHeld && !this.ended;
  }
  own(): void {}
  end(): void {
    this.ended = true;
  }
}

/** The job of a session, as the queue of its policy holds it. */
function jobFor(spec: SessionSpec): SessionJob {
  const placement = toPlacement(sessionSpecSchema.parse(spec), MARK);
  return { ...newSessionJob(ref, 'one', placement), placementClass: placementClass(placement) };
}

function open(
  spec: SessionSpec = {},
  {
    job = jobFor(spec),
    offers = [classOf('docker')],
    admission = ADMIT_EVERYTHING,
  }: { job?: SessionJob; offers?: PlacementClass[]; admission?: Admission } = {},
) {
  const mailbox = new FakeMailbox(keys, sealer, spec);
  stage.mailbox = mailbox;
  const sandboxes = new FakeSandboxes();
  const lease = new FakeLease();
  const jobs = {
    grant: () => mailbox.functions.grant({} as never, {} as never, {} as never, HOST, 1),
    remove: vi.fn(async () => {}),
    ensure: vi.fn(async () => {}),
    putBack: vi.fn(async () => {}),
  };
  const host = { takesNew: true };
  const journal = new FakeJournal();
  const log = { append: async () => {}, async *restore() {} };
  const session = new HostedSession(job, {
    offers,
    ...{ hostId: HOST, fleet: fleetKeys('ns'), sealer, sandboxes, lockMs: 60_000 },
    // Restored output is read here: there is none.
    redis: { xrangeBuffer: async () => [] } as never,
    jobs: jobs as unknown as SessionJobs,
    leases: {
      add: (_job, _lockMs, onLost) => {
        lease.lose = onLost;
        return lease;
      },
      renew: async () => {},
    },
    takesNew: () => host.takesNew,
    limitOpening: (work) => work(),
    hostLog: { ofCommand: () => log } as unknown as HostLog,
    hostEntries: new RunningEntries(),
    journal,
    redisLosses: { mayHaveHappened: () => false },
    audit: NO_AUDIT,
    readerStallMs: 60_000,
    egress: { hosts: [], privateAddresses: [] },
    admission,
    approvals: { starts: new StartsUnderWay() } as never,
    logger: pino({ level: 'silent' }),
  });
  const keeper = () => sandboxes.made.at(-1)!.keeper;
  return { mailbox, sandboxes, lease, jobs, journal, session, keeper, host };
}

/** The state after an earlier process of the worker: a living sandbox whose shell runs an entry. */
function adoptable({ mailbox }: ReturnType<typeof open>, entry: { id: string; cancelReason?: string; host?: string }) {
  const sandbox = new FakeSandbox('living', ref);
  const { id, cancelReason, host = HOST } = entry;
  mailbox.submit({ id, script: 'hold' });
  mailbox.running = { ...mailbox.waiting.shift()!, startedAt: 2, host, ...(cancelReason && { cancelReason }) };
  mailbox.shell = { host: HOST, sandbox: sandbox.id };
  mailbox.epoch = 1;
  return sandbox;
}

const outcomes = ({ finished }: FakeMailbox) => finished.map(({ id, outcome }) => `${id} ${outcome}`);
const running: Promise<unknown>[] = [];
const sessions: HostedSession[] = [];
function serve(it: ReturnType<typeof open>, found?: FakeSandbox): Promise<'ended' | 'failed'> {
  const served = it.session.serve(found);
  running.push(served);
  sessions.push(it.session);
  return served;
}

beforeEach(() => {
  running.length = 0;
  sessions.length = 0;
});
afterEach(async () => {
  for (const session of sessions) session.stop('end');
  await Promise.all(running);
});

test('runs the entries in order, prepares the shell once, and takes each in the step that ends the one before', async () => {
  const it = open();
  for (const id of ['a', 'b', 'c']) it.mailbox.submit({ id, script: 'true' });
  void serve(it);
  await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success', 'c success']);
  expect(it.sandboxes.made).toHaveLength(1);
  // The first of the four is the preparation.
  expect(it.keeper().begun.slice(1)).toEqual(['a', 'b', 'c']);
  expect(it.mailbox.events).toEqual(['session.opened']);
  expect(it.mailbox.takes).toBe(1);
});

test('a session without rules, approval and keys costs one script a command (ADMIT-2)', async () => {
  const rules = judgeByRules({ rules: compileOperatorRules([]) }, { unjudged: [], onReported: () => {} });
  const answers = { find: () => Promise.reject(new Error('nothing is asked')) };
  const it = open({}, { admission: createAdmission({ signatures: ANYONE_SUBMITS, rules, answers }) });
  for (const id of ['a', 'b', 'c']) it.mailbox.submit({ id, script: 'rm -rf /' });
  void serve(it);
  await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success', 'c success']);
  const { calls } = it.mailbox;
  expect(calls.slice(calls.indexOf('take'))).toEqual(['take', 'finish', 'finish', 'finish']);
});

test('a session that nothing wakes takes nothing; a wake-up lets it look', async () => {
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

describe('SESSION-2', () => {
  test('when the lease has lapsed while a command ran, its finish takes nothing; what waits starts only after a renewal', async () => {
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

  test('an entry whose start was answered after the lease had lapsed reaches the shell after a renewal, or never', async () => {
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

  test('nothing is taken for a shell whose lease ended while it was opened', async () => {
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

  test('nothing is taken for a shell whose startup command failed: what waits fails', async () => {
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

describe('SESSION-5: while the host takes nothing new', () => {
  test('a session without a living shell leaves for another host, with what waits and its place in the line', async () => {
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
  ])('a shell that is being prepared when %s is dropped, and the session leaves', async (_when, begin) => {
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

  test('a session with a living shell stays and runs its commands', async () => {
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

  test('a session whose opening was dropped opens its shell here after all when the host takes sessions again', async () => {
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

describe('A sandbox that is lost while a command runs', () => {
  test.each([
    ['an idempotent one runs again in the next, and its Result counts the starts', 'idempotent', 1, 'success', 2, 2],
    ['an idempotent one is started three times in all', 'idempotent', 3, 'error', 3, 3],
    ['another one is not run again', undefined, 1, 'error', undefined, 1],
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
    'an idempotent one that %s is not run again',
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

describe('cancel', () => {
  test('an entry that runs is stopped', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    void serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.session.cancel('one', 'a');
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a cancellation']);
  });

  test('an entry that has not started here yet is stopped as it starts', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    it.session.cancel('one', 'a');
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a cancellation']);
    expect(it.keeper().stops).toEqual(['a']);
  });

  test('a call for an earlier life of the session, to close it or to cancel an entry, does nothing', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    it.session.closeLife('zero');
    void serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.session.closeLife('zero');
    it.session.cancel('zero', 'a');
    await new Promise((resolve) => setImmediate(resolve));
    expect(it.keeper().stops).toEqual([]);
    it.keeper().end();
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
  });

  test('a command that was cancelled while its worker was dead is stopped when its shell is adopted', async () => {
    const it = open();
    const sandbox = adoptable(it, { id: 'a', cancelReason: 'caller' });
    sandbox.keeper.begin('a');
    void serve(it, sandbox);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a cancellation']);
  });
});

describe('SESSION-1', () => {
  test('the first refused write ends the session and its sandbox; nothing more is written', async () => {
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

  test('a lost lease ends the sandbox at once, while a command runs', async () => {
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

describe('the end of a session', () => {
  test('a handed-over shell lives on, with its lease, its job and what waits', async () => {
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

  test('a worker that shuts down cancels what runs and releases the session', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    const served = serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.session.stop('end');
    expect(await served).toBe('ended');
    expect(outcomes(it.mailbox)).toEqual(['a cancellation']);
    expect([it.sandboxes.made[0]?.removed, it.lease.ended, it.mailbox.released]).toEqual([true, true, 'lost']);
  });

  test('a keeper that ignores the end of its worker loses its sandbox when the grace is over', async () => {
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

  test('a close outranks a hand-over: the shell ends', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'hold' });
    const served = serve(it);
    await expect.poll(() => it.keeper()?.begun).toContain('a');
    it.session.stop('hand-over');
    it.mailbox.life = 'closing';
    it.session.closeLife('one');
    expect(await served).toBe('ended');
    expect(outcomes(it.mailbox)).toEqual(['a cancellation']);
    expect([it.sandboxes.made[0]?.removed, it.mailbox.released]).toEqual([true, 'queued']);
    expect(it.jobs.remove).toHaveBeenCalled();
  });

  test('a close whose call was lost is found at the next look', async () => {
    const it = open();
    it.mailbox.submit({ id: 'a', script: 'true' });
    const served = serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
    it.mailbox.life = 'closing';
    it.session.wakeUp();
    expect(await served).toBe('ended');
    expect(it.mailbox.released).toBe('queued');
  });

  test('an idle session is given up, and its job is added again when something was submitted meanwhile', async () => {
    const it = open({ idleTimeoutMs: 50 });
    it.mailbox.submit({ id: 'a', script: 'true' });
    it.jobs.remove.mockImplementation(async () => void it.mailbox.submit({ id: 'late', script: 'true' }));
    expect(await serve(it)).toBe('ended');
    expect(it.mailbox.released).toBe('lost');
    expect(it.jobs.ensure).toHaveBeenCalledTimes(1);
  });
});

describe('What is in clear beside the sealed spec', () => {
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
  ])(
    'a job is refused when %s: what waits ends with an error, and no sandbox is opened',
    async (_title, change, part) => {
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
      // It is not given to the next host.
      expect(it.mailbox.released).toBe('queued');
      expect(it.jobs.remove).toHaveBeenCalledTimes(1);
    },
  );

  test('a refused job ends the sandbox that an earlier one had, and reports what ran there as lost', async () => {
    const it = open(spec, { job: { ...jobFor(spec), data: { ...data, priority: 0 } } });
    const found = adoptable(it, { id: 'ran' });
    it.mailbox.submit({ id: 'waits', script: 'true' });
    expect(await serve(it, found)).toBe('ended');
    expect(outcomes(it.mailbox)).toEqual(['ran lost', 'waits error']);
    expect(found.removed).toBe(true);
  });

  test('a job of an earlier life with another priority is taken', async () => {
    const it = open(spec, { job: { ...jobFor(spec), data: { ...data, generation: 'before', priority: 0 } } });
    it.mailbox.submit({ id: 'a', script: 'true' });
    void serve(it);
    await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success']);
  });

  test('a session of a policy that this host offers no more is released with what waits, and gets a job of its own class', async () => {
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

describe('An entry that this host began before Redis forgot it', () => {
  test.each([
    ['is lost', 'never', ['a', 'b'], ['x lost', 'b success']],
    ['runs again when it is idempotent', 'idempotent', ['a', 'x', 'b'], ['x success', 'b success']],
  ] as const)('%s; what waits behind it runs', async (_title, retry, begun, after) => {
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

test('an entry that was started by a finish whose reply was lost runs on a fresh shell when its own has died meanwhile', async () => {
  const it = open();
  it.mailbox.submit({ id: 'a', script: 'true' });
  it.mailbox.submit({ id: 'b', script: 'true' });
  it.mailbox.onLostReply = () => it.sandboxes.made[0]?.die('removed');
  void serve(it);
  await expect.poll(() => outcomes(it.mailbox)).toEqual(['a success', 'b success']);
  expect(it.sandboxes.made.map(({ keeper }) => keeper.begun.slice(1))).toEqual([['a'], ['b']]);
});
