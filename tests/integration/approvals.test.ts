import { Fleet, type Session, type SessionSpec } from '@shellfleet/client';
import { approvalKeys, askersKey, encodeWakeUp, recordKey, type SessionKeys, sessionKeys } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeShellWorker, newFleet, startFakeShellWorker } from '../support/fake-shell-workers.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

// Questions and answers, with two real workers whose shells are in memory.

let own: OwnRedis;
let fleet: Fleet;
let workers: FakeShellWorker[];
const of = newFleet();
let sessions = 0;

beforeAll(async () => {
  own = await startOwnRedis();
  const redisUrl = own.url;
  workers = await Promise.all(['h1', 'h2'].map((id) => startFakeShellWorker({ redisUrl, ...of, id })));
  fleet = await Fleet.connect({ redisUrl, namespace: of.namespace, sealKeys: [of.sealKey] });
});
afterAll(async () => {
  await fleet?.close();
  await Promise.all(workers?.map(({ worker }) => worker.close('end', 1_000)));
  await own?.[Symbol.asyncDispose]();
});

const open = (spec: SessionSpec = {}) => fleet.session(`s${++sessions}`, spec);
const asked = (script: string) =>
  until(
    async () => (await fleet.approvals.list()).find((approval) => approval.script === script),
    (found) => found !== undefined,
  ).then((found) => found!);
/** Returns what the hosts' audit logs record about the end of a command. */
const endsOf = (commandId: string) =>
  workers
    .flatMap(({ audited }) => audited)
    .flatMap((event) =>
      event.type === 'end' && `${event.session}.${event.entry}` === commandId ? [[event.outcome, event.error]] : [],
    );
const decisionsOn = (commandId: string) =>
  workers
    .flatMap(({ audited }) => audited)
    .flatMap((event) =>
      event.type === 'decision' && `${event.session}.${event.entry}` === commandId
        ? [[event.decision, event.question]]
        : [],
    );
const eventsOf = async (session: Session) => {
  const types: string[] = [];
  const stop = AbortSignal.timeout(300);
  try {
    for await (const { type, data } of session.events({ signal: stop }))
      if (type.startsWith('approval')) types.push(`${type} ${JSON.stringify(data)}`);
  } catch {}
  return types;
};

describe('a question', () => {
  test('shows everything that will run, and starts the command once it is approved', async () => {
    const session = await open({ image: 'debian' });
    const command = await session.submit('ask me', { cwd: '/tmp', env: { NAME: 'v' }, stdin: 'abc' });
    const approval = await asked('ask me');
    expect(approval).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{20}\.[0-9a-f]{12}$/),
      state: 'pending',
      sessionId: session.id,
      commandId: command.id,
      script: 'ask me',
      reason: 'it asks',
      place: 'policy docker, image debian',
      cwd: '/tmp',
      env: ['NAME'],
      stdin: { bytes: 3, sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad' },
      amendment: { pattern: ['ask', 'me'], decision: 'allow' },
      count: 1,
      askedAt: expect.any(String),
      expiresAt: expect.any(String),
    });
    expect(Date.parse(approval.expiresAt) - Date.parse(approval.askedAt)).toBe(600_000);
    await fleet.approvals.approve(approval.id, { answeredBy: 'alice' });
    expect(await command.result()).toMatchObject({ outcome: 'success' });
    expect(await eventsOf(session)).toEqual([
      `approval.requested ${JSON.stringify({ id: approval.id, reason: 'it asks', expiresAt: approval.expiresAt })}`,
      `approval.answered ${JSON.stringify({ id: approval.id, decision: 'approved', scope: 'command', answeredBy: 'alice' })}`,
    ]);
    expect(await fleet.approvals.list()).toEqual([]);
  });

  // seeds Wrong 7
  test('is sealed in Redis, together with the reason of a denial', async () => {
    const session = await open();
    const command = await session.submit('ask quoted-word');
    const approval = await asked('ask quoted-word');
    expect(approval.reason).toBe('it asks: ask quoted-word');
    await fleet.approvals.approve(approval.id);
    await command.result();
    expect((await eventsOf(session))[0]).toContain('it asks: ask quoted-word');
    const denied = await session.run('forbid quoted-word');
    expect(denied).toMatchObject({ outcome: 'denial', stderr: 'Denied: it is forbidden: forbid quoted-word\n' });
    const stored: string[] = [];
    const { stream } = sessionKeys(of.keyspace, 'default', session.id);
    for (const [, fields] of await own.redis.xrange(stream, '-', '+')) stored.push(fields.join(' '));
    expect(stored.filter((text) => text.includes('approval.requested'))).toHaveLength(1);
    expect(stored.filter((text) => text.includes('"denial"'))).toHaveLength(1);
    expect(stored.filter((text) => text.includes('quoted-word'))).toEqual([]);
    await session.close();
  });

  test('rejects a restart with the text of the denial', async () => {
    const forbidden = await open({ env: { RESTART: 'forbid' } });
    const of = { code: 'RESTART_DENIED', retryable: false };
    await expect(forbidden.restart()).rejects.toMatchObject({
      ...{ ...of, context: { reason: 'rules' } },
      message: expect.stringContaining('was not restarted. Denied: it is forbidden'),
    });
    const session = await open({ env: { RESTART: 'ask' } });
    const restarted = expect(session.restart()).rejects.toMatchObject({
      ...{ ...of, context: { reason: 'approver' } },
      message: expect.stringContaining('not now'),
    });
    const mine = await until(
      () => fleet.approvals.list({ sessionId: session.id }),
      ({ length }) => length > 0,
    );
    await fleet.approvals.deny(mine[0]!.id, 'not now');
    await restarted;
    await Promise.all([forbidden.close(), session.close()]);
  });

  // fault 108
  test.each(['cancel', 'close'] as const)('is shown as that of the next asker after a %s of the first', async (how) => {
    const script = `ask the same, ${how}`;
    const [gone, stays] = [await open(), await open()];
    const first = await gone.submit(script);
    const { id } = await asked(script);
    const second = await stays.submit(script);
    await until(
      () => fleet.approvals.list(),
      (all) => all.some((one) => one.id === id && one.count === 2),
    );
    if (how === 'cancel') await first.cancel();
    else await gone.close();
    // The list is read at once, before upkeep can change the question.
    const shown = { id, sessionId: stays.id, commandId: second.id, count: 1 };
    expect(await fleet.approvals.list()).toMatchObject([shown]);
    expect(await fleet.approvals.list({ sessionId: gone.id })).toEqual([]);
    expect(await fleet.approvals.list({ sessionId: stays.id })).toMatchObject([shown]);
    await fleet.approvals.approve(id, { scope: 'session' });
    expect(await second.result()).toMatchObject({ outcome: 'success' });
    await stays.close();
    if (how === 'close') return;
    // The approval grants nothing to the session whose command was cancelled.
    const again = await gone.submit(script);
    await fleet.approvals.deny((await asked(script)).id);
    expect(await again.result()).toMatchObject({ outcome: 'denial' });
    await gone.close();
  });

  // fault 108
  test.each(['approve', 'deny'] as const)(
    'is gone for `%s` after its only asker was cancelled, and grants nothing',
    async (how) => {
      const script = `ask in vain, ${how}`;
      const session = await open();
      const command = await session.submit(script);
      const { id } = await asked(script);
      await command.cancel();
      const answer = how === 'approve' ? fleet.approvals.approve(id, { scope: 'session' }) : fleet.approvals.deny(id);
      await expect(answer).rejects.toMatchObject({ code: 'APPROVAL_NOT_FOUND' });
      const again = await session.submit(script);
      await fleet.approvals.deny((await asked(script)).id);
      expect(await again.result()).toMatchObject({ outcome: 'denial' });
      await session.close();
    },
  );

  // S3-01
  test('ends its command as a denial that names the person and the reason', async () => {
    const session = await open();
    const denied = await session.submit('ask no');
    const behind = await session.submit('true');
    await fleet.approvals.deny((await asked('ask no')).id, 'not today', { answeredBy: 'bob' });
    expect(await denied.result()).toMatchObject({
      outcome: 'denial',
      reason: 'approver',
      stderr: 'Denied: bob denied it: not today\n',
    });
    expect(await behind.result()).toMatchObject({ outcome: 'success' });
    const aborted = await session.submit('ask no more');
    const cancelled = await session.submit('true');
    await fleet.approvals.deny((await asked('ask no more')).id, undefined, { abort: true });
    expect(await aborted.result()).toMatchObject({ outcome: 'denial', reason: 'approver' });
    expect(await cancelled.result()).toMatchObject({ outcome: 'cancellation' });
  });

  test('accepts one of two simultaneous answers, and tells the other person which', async () => {
    const command = await (await open()).submit('ask both');
    const { id } = await asked('ask both');
    const [approved, denied] = await Promise.allSettled([
      fleet.approvals.approve(id, { answeredBy: 'ada' }),
      fleet.approvals.deny(id, undefined, { answeredBy: 'bob' }),
    ]);
    expect([approved.status, denied.status].sort()).toEqual(['fulfilled', 'rejected']);
    const refused = approved.status === 'rejected' ? approved.reason : (denied as PromiseRejectedResult).reason;
    const by = approved.status === 'rejected' ? 'denied by bob' : 'approved by ada';
    expect(refused).toMatchObject({ code: 'APPROVAL_NOT_FOUND', message: expect.stringContaining(`it was ${by}`) });
    expect((await command.result()).outcome).toBe(approved.status === 'fulfilled' ? 'success' : 'denial');
  });

  test('ends its command with an error, but no denial, if nobody answers in time', async () => {
    const session = await open({ approvalTimeoutMs: 300 });
    const command = await session.submit('ask in time');
    expect(await command.result()).toMatchObject({ outcome: 'error', error: { code: 'APPROVAL_EXPIRED' } });
    expect(await fleet.approvals.list()).toEqual([]);
  });

  test('stops the timeout of its command, and frees the slot without a shell', async () => {
    const session = await open();
    const command = await session.submit('ask for long', { timeoutMs: 400 });
    const { id } = await asked('ask for long');
    await until(
      () => session.info(),
      ({ hostId }) => hostId === null,
    );
    await new Promise((resolve) => setTimeout(resolve, 500));
    await fleet.approvals.approve(id);
    expect(await command.result()).toMatchObject({ outcome: 'success' });
  });

  test('keeps the slot of a session with a shell until its idle timeout', async () => {
    const session = await open({ idleTimeoutMs: 1_500 });
    await session.run('true');
    const command = await session.submit('ask with a shell');
    const { id } = await asked('ask with a shell');
    expect(await session.info()).toMatchObject({ state: 'ready', heldCommandId: command.id });
    const { hostId } = await session.info();
    await until(
      () => fleet.hosts(),
      (hosts) => hosts.find((host) => host.id === hostId)?.held === 1,
    );
    await until(
      () => session.info(),
      (info) => info.hostId === null,
    );
    // The shell that would have run the command is gone, so the command is asked about again.
    await fleet.approvals.approve(id);
    const again = await until(
      async () => (await fleet.approvals.list()).find(({ script }) => script === 'ask with a shell'),
      (found) => found !== undefined && found.id !== id,
    );
    await fleet.approvals.approve(again!.id);
    expect(await command.result()).toMatchObject({ outcome: 'success' });
    expect((await session.info()).heldCommandId).toBeUndefined();
  });

  test('is asked again after Redis has lost it', async () => {
    const session = await open();
    const command = await session.submit('ask after a loss');
    const { id } = await asked('ask after a loss');
    const keys = approvalKeys(of.keyspace, 'default');
    await own.redis.del(keys.asked, keys.pending, keys.questions, askersKey(keys, id));
    const again = await asked('ask after a loss');
    expect(again.id).not.toBe(id);
    await fleet.approvals.approve(again.id);
    expect(await command.result()).toMatchObject({ outcome: 'success' });
  });

  test('is withdrawn if its command is cancelled or its session closed', async () => {
    const session = await open();
    const command = await session.submit('ask and cancel');
    const { id } = await asked('ask and cancel');
    await command.cancel();
    expect(await command.result()).toMatchObject({ outcome: 'cancellation' });
    const other = await open();
    await other.submit('ask and close');
    await asked('ask and close');
    await other.close();
    await until(
      () => fleet.approvals.list(),
      (list) => list.length === 0,
    );
    await expect(fleet.approvals.approve(id)).rejects.toMatchObject({ code: 'APPROVAL_NOT_FOUND' });
  });

  test('reports to watchers its start, the number of askers and its end', async () => {
    const stop = new AbortController();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { script, state, count, answeredBy } of fleet.approvals.watch({ signal: stop.signal }))
        seen.push(`${script} ${state} ${count} ${answeredBy ?? ''}`);
    })();
    const first = await (await open()).submit('ask watchers');
    await until(
      async () => seen.length,
      (length) => length === 1,
    );
    const second = await (await open()).submit('ask watchers');
    await until(
      async () => seen.length,
      (length) => length === 2,
    );
    await fleet.approvals.approve((await asked('ask watchers')).id, { answeredBy: 'carol' });
    await Promise.all([first.result(), second.result()]);
    await until(
      async () => seen.length,
      (length) => length === 3,
    );
    expect(seen).toEqual(['ask watchers pending 1 ', 'ask watchers pending 2 ', 'ask watchers approved 2 carol']);
    stop.abort();
    await expect(watching).rejects.toThrow();
  });
});

describe('an approval', () => {
  // S3-04
  test('of the scope `command` covers only its asker', async () => {
    const session = await open();
    const command = await session.submit('ask once');
    const { id } = await asked('ask once');
    await fleet.approvals.approve(id);
    await command.result();
    const again = await session.submit('ask once');
    const next = await asked('ask once');
    expect(next.id).not.toBe(id);
    await expect(fleet.approvals.approve(id)).rejects.toMatchObject({ code: 'APPROVAL_NOT_FOUND' });
    await fleet.approvals.deny(next.id);
    expect(await again.result()).toMatchObject({ outcome: 'denial' });
    // A denial, too, covers one command only.
    const third = await session.submit('ask once');
    await fleet.approvals.approve((await asked('ask once')).id);
    expect(await third.result()).toMatchObject({ outcome: 'success' });
  });

  // S3-02, S3-03
  test('of the scope `session` covers the same question in one session', async () => {
    const [session, other] = [await open(), await open()];
    const first = await session.submit('ask of session');
    await fleet.approvals.approve((await asked('ask of session')).id, { scope: 'session' });
    await first.result();
    expect(await session.run('ask of session')).toMatchObject({ outcome: 'success' });
    const elsewhere = await other.submit('ask of session');
    await fleet.approvals.deny((await asked('ask of session')).id);
    expect(await elsewhere.result()).toMatchObject({ outcome: 'denial' });
    const changed = await session.submit('ask of session', { env: { A: '1' } });
    await fleet.approvals.deny((await asked('ask of session')).id);
    expect(await changed.result()).toMatchObject({ outcome: 'denial' });
  });

  // S3-01, S3-28
  test('of the scope `prefix` covers all sessions of its tenant until it is revoked', async () => {
    const first = await (await open()).submit('ask prefix 1');
    const { id } = await asked('ask prefix 1');
    await fleet.approvals.approve(id, { scope: 'prefix', answeredBy: 'dave' });
    await first.result();
    const session = await open();
    expect(await session.run('ask prefix 2')).toMatchObject({ outcome: 'success' });
    expect(await session.run('forbid prefix')).toMatchObject({ outcome: 'denial', reason: 'rules' });
    expect(await fleet.approvals.list({ state: 'approved' })).toContainEqual(
      expect.objectContaining({ id, state: 'approved', scope: 'prefix', answeredBy: 'dave' }),
    );
    await fleet.approvals.revoke(id);
    const after = await session.submit('ask prefix 3');
    await fleet.approvals.deny((await asked('ask prefix 3')).id);
    expect(await after.result()).toMatchObject({ outcome: 'denial' });
    await expect(fleet.approvals.revoke(id)).rejects.toMatchObject({ code: 'APPROVAL_NOT_FOUND' });
  });
});

describe('questions of a session', () => {
  test('are hidden for a while after several denials in a row', async () => {
    const session = await open();
    for (const attempt of [1, 2, 3, 4]) {
      const command = await session.submit(`ask again ${attempt}`);
      await fleet.approvals.deny((await asked(`ask again ${attempt}`)).id);
      await command.result();
    }
    const refused = await session.run('ask again 5');
    expect(refused).toMatchObject({ outcome: 'denial', reason: 'rules' });
    expect(refused.stderr).toContain('denied several times in a row');
    expect(decisionsOn(refused.commandId)).toEqual([['deny', undefined]]);
  });
});

describe('the audit log', () => {
  test('records which question a command asked, who answered, and how the command ended', async () => {
    const session = await open();
    const command = await session.submit('ask for the record');
    const { id } = await asked('ask for the record');
    await fleet.approvals.approve(id);
    await command.result();
    // Each host has its own log. The command may have started on another host than the one that held it.
    expect(decisionsOn(command.id).toSorted()).toEqual([
      ['admit', undefined],
      ['hold', id],
    ]);
    const denied = await session.submit('ask for nothing');
    await fleet.approvals.deny((await asked('ask for nothing')).id);
    await denied.result();
    const expired = await (await open({ approvalTimeoutMs: 100 })).submit('ask nobody');
    await expired.result();
    await expect.poll(() => endsOf(denied.id)).toEqual([['denial', undefined]]);
    await expect.poll(() => endsOf(expired.id)).toEqual([['error', 'APPROVAL_EXPIRED']]);
  });
});

describe('a held command', () => {
  // ADMIT-8
  test.each([
    [
      'cleared and held no more',
      async (keys: SessionKeys, id: string) => {
        const record = recordKey(keys, id);
        await own.redis.hset(record, 'cleared', (await own.redis.hget(record, 'held')) ?? '');
        await own.redis.hdel(keys.state, 'held');
      },
    ],
    [
      'started',
      async (keys: SessionKeys, id: string) => {
        const { fence = '', host = '' } = await own.redis.hgetall(keys.state);
        await own.redis.hset(recordKey(keys, id), { state: 'running', fence, host, startedAt: Date.now() });
        await own.redis.multi().lrem(keys.queue, 0, id).hset(keys.state, 'running', id).exec();
      },
    ],
  ])('reaches no shell if its record is changed by hand into one that is %s', async (_how, change) => {
    const session = await open();
    await session.run('true');
    const begun = () => workers.reduce((sum, worker) => sum + worker.begun(), 0);
    const before = begun();
    const command = await session.submit('ask nobody');
    await asked('ask nobody');
    const keys = sessionKeys(of.keyspace, 'default', session.id);
    await change(keys, command.id.slice(session.id.length + 1));
    const { hostId } = await session.info();
    const wakeUp = encodeWakeUp({ type: 'session', tenant: 'default', session: session.id });
    await own.redis.publish(`${keys.wakeUpsPrefix}${hostId}`, wakeUp);
    expect(await command.result()).toMatchObject({
      outcome: 'denial',
      reason: 'rules',
      stderr: 'Denied: it asks No answer allows it.\n',
    });
    expect(begun()).toBe(before);
  });

  test('ignores an answer that no process of the fleet has sealed', async () => {
    const command = await (await open()).submit('ask a forger');
    const { id } = await asked('ask a forger');
    const keys = approvalKeys(of.keyspace, 'default');
    await own.redis.xadd(
      keys.answers,
      '*',
      'd',
      JSON.stringify({ type: 'approve', id, scope: 'command', answeredBy: 'x' }),
    );
    await until(
      () => own.redis.xlen(keys.answers),
      (length) => length === 0,
    );
    expect(await asked('ask a forger')).toMatchObject({ id });
    await command.cancel();
  });
});

describe('an approval of the scope `session`', () => {
  // S3-28
  test('outlives a restart of every worker', async () => {
    const session = await open();
    const command = await session.submit('ask before the restart');
    await fleet.approvals.approve((await asked('ask before the restart')).id, { scope: 'session' });
    await command.result();
    await Promise.all(workers.map(({ worker }) => worker.close('hand-over', 0)));
    const redisUrl = own.url;
    workers = await Promise.all(['h1', 'h2'].map((id) => startFakeShellWorker({ redisUrl, ...of, id })));
    expect(await session.run('ask before the restart')).toMatchObject({ outcome: 'success' });
  });
});
