import { type Command, Fleet, type Session, type SessionSpec } from '@shellfleet/client';
import type { Rules } from '@shellfleet/worker/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ASKING, type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

// Commands that wait for a person. Two real workers have shells in memory, and Redis has an append-only file.

/** Scripts that the rules of both hosts forbid since the hosts read the rules again. */
const forbidden: string[] = [];
const rules: Rules = {
  ...ASKING,
  get digest() {
    return `asking, and forbidding ${forbidden.length}`;
  },
  decide(question, granted) {
    const { payload } = question;
    const isForbidden = payload.type === 'command' && forbidden.includes(payload.script);
    return isForbidden ? { type: 'forbid', reason: 'it is forbidden now' } : ASKING.decide(question, granted);
  },
};

let own: OwnRedis;
let fleet: Fleet;
let capped: Fleet;
let workers: FakeShellWorker[];

beforeAll(async () => {
  own = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'everysec'); // a killed process loses nothing that it has written
  const { namespace, sealKey } = newFleet();
  const of = { redisUrl: own.url, namespace };
  const start = (id: string) =>
    startFakeShellWorker({ ...of, sealKey, id, slots: 35, rules, pendingPerTenant: MOST_PENDING });
  workers = await Promise.all(['h1', 'h2'].map(start));
  fleet = await Fleet.connect({ ...of, sealKeys: [sealKey] });
  capped = await Fleet.connect({ ...of, sealKeys: [sealKey], tenant: 'capped' });
});
afterAll(async () => {
  await Promise.all([fleet?.close(), capped?.close()]);
  await Promise.all(workers?.map(({ worker }) => worker.close('end', 1_000)));
  await own?.[Symbol.asyncDispose]();
});

/** Limit of pending questions, which is higher than what the other tests ask at once. */
const MOST_PENDING = 16;
let sessions = 0;
const open = (spec: SessionSpec = {}) => fleet.session(`s${++sessions}`, spec);
const pending = async (script: string) => (await fleet.approvals.list()).filter((one) => one.script === script);
const untilAsked = (script: string, count = 1) =>
  until(
    () => pending(script),
    ([question]) => question?.count === count,
  ).then(([question]) => question!);
const untilGone = (script: string) =>
  until(
    () => pending(script),
    (list) => list.length === 0,
  );
const hasBegun = ({ id, sessionId }: Command) => {
  const keepers = workers.flatMap(({ sandboxes }) => sandboxes.made.map(({ keeper }) => keeper));
  return keepers.some(({ begun }) => begun.includes(id.slice(sessionId.length + 1)));
};
/** Opens a session whose shell has started. */
async function openReady(): Promise<Session> {
  const session = await open();
  await session.run('true');
  return session;
}

describe.concurrent('a command that waits for a person', { timeout: 60_000 }, () => {
  test('is returned for its idempotency key, and conflicts with another payload', async () => {
    const session = await open();
    const key = { idempotencyKey: 'once' };
    const command = await session.submit('ask once', key);
    const { id } = await untilAsked('ask once');
    expect((await session.submit('ask once', key)).id).toBe(command.id);
    await expect(session.submit('ask twice', key)).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    expect(await pending('ask once')).toMatchObject([{ id, count: 1 }]);
    await fleet.approvals.approve(id);
    expect(await command.result()).toMatchObject({ outcome: 'success' });
    const again = await session.submit('ask once', key);
    expect([again.id, (await again.result()).outcome]).toEqual([command.id, 'success']);
    expect(await pending('ask once')).toEqual([]);
  });

  test.each([
    ['without a shell', open],
    ['with a shell', openReady],
  ])('ends at its start deadline in a session %s, and the next command runs', async (how, openOne) => {
    const session = await openOne();
    const script = `ask until late ${how}`;
    const command = await session.submit(script, { startDeadlineMs: 5_000 });
    const behind = await session.submit('true');
    const { id } = await untilAsked(script);
    expect(await command.result()).toMatchObject({ outcome: 'timeout', reason: 'not-started' });
    expect(await behind.result()).toMatchObject({ outcome: 'success' });
    await untilGone(script);
    await expect(fleet.approvals.approve(id)).rejects.toMatchObject({ code: 'APPROVAL_NOT_FOUND' });
    expect(hasBegun(command)).toBe(false);
  });

  test('leaves its question to other sessions after its cancellation or the close of its session', async () => {
    const all = await Promise.all(['cancel', 'close', 'stay'].map(() => open()));
    const commands = await Promise.all(all.map((session) => session.submit('ask together')));
    const [cancelled, closed, stays] = commands as [Command, Command, Command];
    const { id } = await untilAsked('ask together', 3);
    await cancelled.cancel();
    await all[1]?.close();
    expect(await cancelled.result()).toMatchObject({ outcome: 'cancellation' });
    expect(await closed.result()).toMatchObject({ outcome: 'cancellation' });
    expect(await untilAsked('ask together')).toMatchObject({ id });
    await fleet.approvals.approve(id, { scope: 'session' });
    expect(await stays.result()).toMatchObject({ outcome: 'success' });
    expect([hasBegun(cancelled), hasBegun(closed)]).toEqual([false, false]);
  });

  // S3-27
  test('shares a question only with sessions of equal variables and secrets, within one generation', async () => {
    const spec = { env: { STAGE: 'test' }, secrets: { TOKEN: 'a secret of one' } };
    const other = { ...spec, secrets: { TOKEN: 'a secret of two' } };
    const opened = await Promise.all([spec, spec, other, { ...spec, env: { STAGE: 'live' } }].map(open));
    const commands = await Promise.all(opened.map((session) => session.submit('ask with secrets')));
    const questions = await until(
      () => pending('ask with secrets'),
      (list) => list.reduce((sum, { count }) => sum + count, 0) === 4,
    );
    expect(questions.map(({ count }) => count).sort()).toEqual([1, 1, 2]);
    for (const { id } of questions) await fleet.approvals.approve(id, { scope: 'session' });
    for (const command of commands) expect(await command.result()).toMatchObject({ outcome: 'success' });
    const [first] = opened as [Session];
    expect(await first.run('ask with secrets')).toMatchObject({ outcome: 'success' });
    await first.close();
    const next = await fleet.session(first.id, spec);
    const asksAnew = await next.submit('ask with secrets');
    await fleet.approvals.deny((await untilAsked('ask with secrets')).id);
    expect(await asksAnew.result()).toMatchObject({ outcome: 'denial' });
  });

  test.each([
    ['without a shell, once it is approved', open, true],
    ['with a shell, at once', openReady, false],
  ])('is denied in a session %s by rules that the host has read since', async (how, openOne, approves) => {
    const session = await openOne();
    const script = `ask before rules ${how}`;
    const command = await session.submit(script);
    const { id } = await untilAsked(script);
    if (approves)
      await until(
        () => session.info(),
        ({ hostId }) => hostId === null,
      );
    forbidden.push(script);
    for (const { worker } of workers) worker.admissionChanged();
    if (approves) await fleet.approvals.approve(id);
    expect(await command.result()).toMatchObject({ outcome: 'denial', reason: 'rules' });
    expect(hasBegun(command)).toBe(false);
    await untilGone(script);
  });

  test('is refused while too many questions of its tenant are pending, until one is answered', async () => {
    const asking = await Promise.all(Array.from({ length: MOST_PENDING }, (_, index) => capped.session(`c${index}`)));
    const commands = await Promise.all(asking.map((session) => session.submit('ask in a crowd')));
    const question = await until(
      () => capped.approvals.list(),
      ([one]) => one?.count === MOST_PENDING,
    );
    const [session] = [await capped.session('one-more')];
    expect(await session.run('ask another')).toMatchObject({
      outcome: 'error',
      error: { code: 'QUOTA_EXCEEDED', message: expect.stringContaining('approvals.pendingPerTenant') },
    });
    expect(await session.run('true')).toMatchObject({ outcome: 'success' });
    await capped.approvals.approve(question[0]?.id ?? '');
    await Promise.all(commands.map((command) => command.result()));
    const asks = await session.submit('ask another');
    const [next] = await until(
      () => capped.approvals.list(),
      (list) => list.length === 1,
    );
    await capped.approvals.deny(next?.id ?? '');
    expect(await asks.result()).toMatchObject({ outcome: 'denial', reason: 'approver' });
  });
});

describe('a pending question', () => {
  test('expires during an outage of Redis if its time is over, and waits otherwise', {
    timeout: 60_000,
  }, async () => {
    const [short, long] = await Promise.all([open({ approvalTimeoutMs: 5_000 }), open()]);
    const [expires, waits] = await Promise.all([short.submit('ask for now'), long.submit('ask for later')]);
    const [{ expiresAt }, { id }] = await Promise.all([untilAsked('ask for now'), untilAsked('ask for later')]);
    await own.kill();
    await until(Date.now, (now) => now > Date.parse(expiresAt));
    await own.start();
    expect(await expires.result()).toMatchObject({ outcome: 'error', error: { code: 'APPROVAL_EXPIRED' } });
    expect(await untilAsked('ask for later')).toMatchObject({ id });
    expect(await pending('ask for now')).toEqual([]);
    await fleet.approvals.approve(id);
    expect(await waits.result()).toMatchObject({ outcome: 'success' });
    expect(hasBegun(expires)).toBe(false);
  });
});
