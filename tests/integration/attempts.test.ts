import { Fleet, type Session, type SessionSpec } from '@shellfleet/client';
import { compileOperatorRules } from '@shellfleet/policy';
import { newResult, OUTPUT_PROFILES, recordKey, sessionKeys } from '@shellfleet/protocol';
import { DENIED, decideByRules, type WiderSandbox } from '@shellfleet/worker/test-support';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

// Commands that leave their sandbox: who is asked, when, and what the Result contains. Two real workers have shells in
// memory, and so has the wider sandbox.

const wider = vi.hoisted(() => ({ refusal: undefined as string | undefined, ran: [] as string[] }));
vi.mock('../../apps/worker/src/wider/create-wider.ts', () => ({
  createWider: (): WiderSandbox => ({
    get refusal() {
      return wider.refusal;
    },
    sandbox: { mode: 'workspace-write', network: 'full', selection: 'auto', escalateOnFailure: false },
    async run({ entry }, { script }) {
      wider.ran.push(entry.id);
      const totals = { stdoutBytes: 0, stderrBytes: 0, stdoutLines: 0, stderrLines: 0 };
      const result = newResult({ outcome: 'success', exitCode: 0, reason: 'exited' }, { stdout: script, totals });
      return { result, output: [] };
    },
  }),
}));

let own: OwnRedis;
let fleet: Fleet;
let workers: FakeShellWorker[];
const of = newFleet();
let sessions = 0;
const rules = decideByRules(
  {
    rules: compileOperatorRules([{ name: '/rules', text: 'rules: [{ pattern: [denied, twice], decision: prompt }]' }]),
  },
  { unchecked: [], onReported: () => {} },
);

beforeAll(async () => {
  own = await startOwnRedis();
  const redisUrl = own.url;
  workers = await Promise.all(['h1', 'h2'].map((id) => startFakeShellWorker({ redisUrl, ...of, id, rules })));
  fleet = await Fleet.connect({ redisUrl, namespace: of.namespace, sealKeys: [of.sealKey] });
});
afterAll(async () => {
  await fleet?.close();
  await Promise.all(workers?.map(({ worker }) => worker.close('end', 1_000)));
  await own?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  wider.refusal = undefined;
  wider.ran.length = 0;
});

const open = (spec: SessionSpec = {}) => fleet.session(`s${++sessions}`, { approval: 'on-failure', ...spec });
const asked = (session: Session, not?: string) =>
  until(
    async () => (await fleet.approvals.list({ sessionId: session.id })).find(({ id }) => id !== not),
    (found) => found !== undefined,
  ).then((found) => found!);
const begun = () => workers.reduce((sum, worker) => sum + worker.begun(), 0);
const FIRST = {
  ...{ outcome: 'failure', exitCode: 1, stdout: DENIED },
  denied: { what: 'files', line: DENIED.trim(), mayAsk: true },
};

// S3-25
describe('a command that its sandbox denied something', () => {
  test('runs once more in the wider sandbox if a person approves', async () => {
    const session = await open();
    const command = await session.submit('denied once');
    const question = await asked(session);
    expect(question).toMatchObject({
      ...{ commandId: command.id, script: 'denied once', outside: true },
      reason: 'Its sandbox has denied its first attempt something. It would run once more, outside.',
      place: 'policy docker, mode workspace-write, network full',
      firstAttempt: { exitCode: 1, output: DENIED },
    });
    expect(question).not.toHaveProperty('amendment');
    expect([begun(), wider.ran]).toEqual([expect.any(Number), []]);
    const before = begun();
    await fleet.approvals.approve(question.id, { answeredBy: 'ada' });
    expect(await command.result()).toMatchObject({
      ...{ outcome: 'success', stdout: 'denied once', outside: true, attempts: 2 },
      firstAttempt: { exitCode: 1, output: DENIED },
    });
    expect([begun() - before, wider.ran]).toEqual([0, [command.id.slice(session.id.length + 1)]]);
    expect((await session.run('true')).shell).toEqual({ state: 'kept', epoch: 1 });
  });

  test.each([
    ['denied', (id: string) => fleet.approvals.deny(id, 'no', { answeredBy: 'bob' }), 'bob denied it: no', 600_000],
    ['not answered in time', async () => {}, /^Nobody answered its question in time/, 300],
  ] as const)(
    'ends with the failure of its first attempt if the second is %s',
    async (_how, answer, refused, approvalTimeoutMs) => {
      const session = await open({ approvalTimeoutMs });
      const command = await session.submit('denied once');
      await answer((await asked(session)).id);
      const result = await command.result();
      expect(result).toMatchObject({ ...FIRST, shell: { state: 'kept', epoch: 1 } });
      expect(result.refused).toMatch(refused);
      expect(result).not.toHaveProperty('attempts');
      expect(wider.ran).toEqual([]);
      expect(await session.run('true')).toMatchObject({ outcome: 'success' });
    },
  );

  test('keeps the output of its first attempt if it is cancelled during the question', async () => {
    const session = await open();
    const command = await session.submit('denied once');
    await asked(session);
    expect(await command.cancel('enough')).toBe(true);
    expect(await command.result()).toMatchObject({
      ...{ outcome: 'cancellation', cancelReason: 'enough', stdout: DENIED, exitCode: null },
    });
    const closed = await session.submit('denied once');
    const { id } = await asked(session);
    const behind = await session.submit('true');
    await fleet.approvals.deny(id, undefined, { abort: true });
    expect(await closed.result()).toMatchObject(FIRST);
    expect(await behind.result()).toMatchObject({ outcome: 'cancellation', stdout: '' });
    const last = await session.submit('denied once');
    await asked(session);
    await session.close();
    expect(await last.result()).toMatchObject({ outcome: 'cancellation', stdout: DENIED });
    expect(wider.ran).toEqual([]);
  });

  // S2-17: the question does not depend on what the Result keeps of the output.
  test.each([
    ['keep: head', { keep: 'head', maxLines: 10 }],
    ['keep: tail', { keep: 'tail', maxBytes: 10 }],
    ['keep: head-tail', { keep: 'head-tail', maxBytes: 20 }],
    ['the profile codex', OUTPUT_PROFILES.codex],
    ['the profile langchain', OUTPUT_PROFILES.langchain],
  ] as const)('asks about a denial in output that its Result leaves out: %s', async (_name, output) => {
    const session = await open({ output });
    const command = await session.submit('denied behind much');
    const { id, firstAttempt } = await asked(session);
    expect(firstAttempt).toEqual({ exitCode: 1, output: `${'a line before it\n'.repeat(40)}${DENIED}`.slice(-500) });
    await fleet.approvals.deny(id, 'no', { answeredBy: 'bob' });
    expect(await command.result()).toMatchObject({
      ...{ outcome: 'failure', denied: FIRST.denied, refused: 'bob denied it: no' },
      totals: { stdoutLines: 4_001 },
    });
    await session.close();
  });

  // S3-09
  test('asks again for the second attempt, though its first attempt was approved', async () => {
    const session = await open();
    const ask = async () => ({ command: await session.submit('denied twice'), first: await asked(session) });
    const { command, first } = await ask();
    expect(first).not.toHaveProperty('firstAttempt');
    await fleet.approvals.approve(first.id, { scope: 'session' });
    const second = await asked(session, first.id);
    expect(second.reason).toBe(
      'Its sandbox has denied its first attempt something. It would run once more, outside. The rule `denied twice` asks about `denied twice`.',
    );
    await fleet.approvals.approve(second.id, { scope: 'session' });
    expect(await command.result()).toMatchObject({ outside: true });
    // Both questions were approved for this session.
    expect(await session.run('denied twice')).toMatchObject({ outside: true, attempts: 2 });
    const other = await open();
    const again = await other.submit('denied twice');
    await fleet.approvals.approve((await asked(other)).id);
    expect((await asked(other)).firstAttempt).toEqual({ exitCode: 1, output: DENIED });
    await again.cancel();
    expect(wider.ran).toHaveLength(2);
  });

  test('is asked about again by the next host, which does not repeat the first attempt', async () => {
    const session = await open({ idleTimeoutMs: 500 });
    const command = await session.submit('denied once');
    const { id } = await asked(session);
    const before = begun();
    // The shell has ended, and the question still waits.
    await until(
      () => session.info(),
      ({ hostId }) => hostId === null,
    );
    expect(await fleet.approvals.list({ sessionId: session.id })).toMatchObject([{ id, state: 'pending' }]);
    await fleet.approvals.approve(id);
    const again = await asked(session, id);
    expect(again.firstAttempt).toEqual({ exitCode: 1, output: DENIED });
    await fleet.approvals.approve(again.id);
    expect(await command.result()).toMatchObject({ outside: true, attempts: 2, outcome: 'success' });
    expect(begun()).toBe(before);
  });

  // S3-08, S3-11
  test.each([
    ['never', { approval: 'never' }, false],
    ['on-request', { approval: 'on-request' }, true],
    ['reject sandbox questions', { approval: { reject: { sandboxApproval: true } } }, false],
    ['escalateOnFailure: false', { sandbox: { escalateOnFailure: false } }, true],
    ['selection: require', { sandbox: { selection: 'require' } }, false],
  ] as const)('fails with the denial in its Result, and asks nobody, under %s', async (_name, spec, mayAsk) => {
    const session = await open(spec);
    expect(await session.run('denied once')).toMatchObject({
      ...FIRST,
      denied: { ...FIRST.denied, mayAsk },
    });
    expect(await fleet.approvals.list({ sessionId: session.id })).toEqual([]);
  });

  // S3-11
  test.each([
    ['unless-trusted', 'unless-trusted'],
    ['reject of other questions', { reject: { rules: false } }],
  ] as const)('asks about its second attempt under %s', async (_name, approval) => {
    const session = await open({ approval });
    const command = await session.submit('denied once');
    if (approval === 'unless-trusted') await fleet.approvals.approve((await asked(session)).id);
    await until(
      () => asked(session),
      ({ firstAttempt }) => firstAttempt !== undefined,
    );
    await command.cancel();
  });

  test('fails on a host without a wider sandbox', async () => {
    wider.refusal = 'this host has no wider sandbox';
    const session = await open();
    const result = await session.run('denied once');
    expect(result).toMatchObject({ ...FIRST, denied: { ...FIRST.denied, mayAsk: false } });
    expect(result).not.toHaveProperty('refused');
  });
});

describe('a record in Redis', () => {
  // ATTEMPT-2
  test('lets no command out of its sandbox unless a host has sealed its first attempt', async () => {
    const session = await open({ approval: 'unless-trusted' });
    const command = await session.submit('write');
    const { id } = await asked(session);
    const before = begun();
    const keys = sessionKeys(of.keyspace, 'default', session.id);
    const firstEnd = JSON.stringify({ outcome: 'failure', exitCode: 1, reason: 'exited' });
    await own.redis.hset(recordKey(keys, command.id.slice(session.id.length + 1)), { first: 'forged', firstEnd });
    await fleet.approvals.approve(id);
    expect(await command.result()).toMatchObject({ outcome: 'error', stdout: '' });
    expect([begun(), wider.ran]).toEqual([before, []]);
  });
});

describe('an idempotent command that lost its shell', () => {
  test.each([
    ['command', 'ends with CONTAINER_LOST', { outcome: 'error', error: { code: 'CONTAINER_LOST' } }],
    ['session', 'runs again', { outcome: 'success', attempts: 2 }],
  ] as const)('that was approved for its %s, %s', async (scope, _what, expected) => {
    const session = await open({ approval: 'unless-trusted' });
    const command = await session.submit('hold on', { retry: 'idempotent' });
    await fleet.approvals.approve((await asked(session)).id, { scope });
    const entry = command.id.slice(session.id.length + 1);
    // Waits until the command has begun in this many sandboxes, and returns them.
    const ranIn = (count: number) =>
      until(
        async () =>
          workers.flatMap(({ sandboxes }) => sandboxes.made).filter(({ keeper }) => keeper.begun.includes(entry)),
        ({ length }) => length === count,
      );
    (await ranIn(1))[0]?.die('removed');
    if (scope === 'session') (await ranIn(2)).at(-1)?.keeper.end();
    expect(await command.result()).toMatchObject(expected);
    expect(await fleet.approvals.list({ sessionId: session.id })).toEqual([]);
  });
});

// S2-01
describe('a command that asks to leave its sandbox', () => {
  const escalate = { justification: 'it writes to /etc' };

  // S3-10
  test('waits for a person with its justification, then runs outside as its only attempt', async () => {
    const session = await open({ approval: 'on-request' });
    const before = begun();
    const command = await session.submit('write', { escalate });
    const question = await asked(session);
    expect(question).toMatchObject({ outside: true, justification: 'it writes to /etc', script: 'write' });
    expect(question).not.toHaveProperty('firstAttempt');
    expect([begun(), wider.ran]).toEqual([before, []]);
    await fleet.approvals.approve(question.id);
    const result = await command.result();
    expect(result).toMatchObject({ outcome: 'success', stdout: 'write', outside: true });
    expect(result).not.toHaveProperty('attempts');
    expect([begun(), wider.ran.length]).toEqual([before, 1]);
  });

  test('is denied if a person refuses, or if its session may ask nothing', async () => {
    const session = await open({ approval: 'on-request' });
    const command = await session.submit('write', { escalate });
    await fleet.approvals.deny((await asked(session)).id);
    expect(await command.result()).toMatchObject({ outcome: 'denial', reason: 'approver' });
    expect(await (await open({ approval: 'never' })).run('write', { escalate })).toMatchObject({ outcome: 'denial' });
    expect(await (await fleet.session('omitted')).run('write', { escalate })).toMatchObject({
      ...{ outcome: 'denial', reason: 'rules' },
      stderr: 'Denied: It asks to leave the sandbox, and nothing may be asked.\n',
    });
    expect(wider.ran).toEqual([]);
  });

  // S3-19
  test('is refused without a question on a host without a wider sandbox', async () => {
    wider.refusal = 'this host has no wider sandbox';
    const session = await open({ approval: 'on-request' });
    expect(await session.run('write', { escalate })).toMatchObject({
      ...{ outcome: 'error', error: { code: 'SANDBOX_UNAVAILABLE' } },
    });
    expect(await fleet.approvals.list({ sessionId: session.id })).toEqual([]);
  });
});
