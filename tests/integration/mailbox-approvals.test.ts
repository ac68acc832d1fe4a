import {
  type Asker,
  applyAnswer,
  askApproval,
  claimAnnouncement,
  expireQuestions,
  findAnswer,
  forgetAnnouncement,
  forgetDecided,
  forgetQuietTenants,
  isAnswerWaiting,
  keepAsking,
  keepWanted,
  putOffAnnouncement,
  readAskingTenants,
  readDecided,
  readQuestions,
  toAsker,
  withdrawAskers,
  withdrawEnded,
  writeAnswer,
} from '@shellfleet/mailbox';
import {
  type ApprovalKeys,
  approvalEndKey,
  approvalGrantKey,
  approvalKeys,
  fleetKeys,
  recordKey,
  sessionKeys,
  wantedKey,
} from '@shellfleet/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { newNamespace } from '../support/mailbox-session.ts';
import { redis, useMailbox } from '../support/open-mailbox.ts';
import { storeWaitingEntry } from '../support/waiting-entry.ts';

useMailbox();

// The scripts of approvals (APPROVALS-1 to APPROVALS-4).

let keys: ApprovalKeys;
beforeEach(() => {
  keys = approvalKeys(newNamespace(), 't1');
});

const HASH = 'a'.repeat(20);
const idOf = (nonce: string, hash = HASH) => `${hash}.${nonce.repeat(12)}`;
const askerOf = (session: string): Asker => ({ session, generation: 'g', entryId: 'e' });
const ask = async (session: string, more: Partial<Parameters<typeof askApproval>[2]> = {}) => {
  await storeWaitingEntry(redis, keys, askerOf(session));
  return askApproval(redis, keys, {
    ...{ id: idOf('1'), asker: askerOf(session), binding: `b-${session}`, timeoutMs: 60_000, mostPending: 10 },
    sealed: 'sealed question',
    ...more,
  });
};
const find = (session: string, binding = `b-${session}`) =>
  findAnswer(redis, keys, askerOf(session), { binding, hash: HASH, prefixes: true, directories: true });
const counts = async () => (await readQuestions(redis, keys)).map(({ id, count }) => ({ id, count }));

/** Writes an answer, and applies it twice. */
async function answer(
  type: 'approve' | 'deny' | 'revoke',
  question: string,
  scope?: 'command' | 'session' | 'prefix',
): Promise<string[]> {
  const id = await writeAnswer(redis, keys, 'sealed answer');
  const state = ({ approve: 'approved', deny: 'denied', revoke: 'revoked' } as const)[type];
  const change = { id, question, type, scope, grant: 'sealed grant', end: { state, answeredBy: 'alice' } };
  const first = await applyAnswer(redis, keys, change);
  const second = await applyAnswer(redis, keys, change);
  expect(await isAnswerWaiting(redis, keys, id)).toBe(false);
  return [first.type, second.type];
}

describe('approvals in the mailbox', () => {
  test('share one question between equal entries, and ignore repeated ones', async () => {
    const first = await ask('s1');
    expect(first).toMatchObject({ type: 'pending', id: idOf('1') });
    expect(await ask('s1', { id: idOf('2') })).toEqual(first);
    expect(await ask('s2', { id: idOf('3') })).toMatchObject({ type: 'pending', id: idOf('1') });
    expect(await counts()).toEqual([{ id: idOf('1'), count: 2 }]);
  });

  test('withdraw the first question of an entry that asks for another shell', async () => {
    await ask('s1');
    expect(await ask('s1', { id: idOf('2'), binding: 'b-other' })).toMatchObject({ id: idOf('2') });
    expect(await counts()).toEqual([{ id: idOf('2'), count: 1 }]);
  });

  test('apply an answer once and for its binding only, and report it later', async () => {
    await ask('s1');
    expect(await answer('approve', idOf('1'), 'command')).toEqual(['applied', 'applied-before']);
    expect(await counts()).toEqual([]);
    expect(await find('s1')).toMatchObject({ unapplied: 0, grant: { id: idOf('1'), sealed: 'sealed grant' } });
    expect((await find('s1', 'b-other')).grant).toBeUndefined();
    expect((await find('s2')).grant).toBeUndefined();
    expect(await readDecided(redis, keys)).toMatchObject([
      { type: 'approve', question: idOf('1'), asker: askerOf('s1'), end: { state: 'approved', answeredBy: 'alice' } },
    ]);
    expect(await ask('s1')).toEqual({ type: 'answered' });
  });

  // S3-28
  test('apply a session grant in that session only, and a prefix grant in all', async () => {
    await ask('s1');
    await answer('approve', idOf('1'), 'session');
    expect((await find('s1', 'b-of the next entry')).grant).toEqual({
      ...{ id: idOf('1'), sealed: 'sealed grant', ofSession: true },
    });
    await answer('revoke', idOf('1'));
    expect((await find('s1', 'b-of the next entry')).grant).toBeUndefined();
    await ask('s2', { id: idOf('2') });
    await answer('approve', idOf('2'), 'prefix');
    expect((await find('s3')).prefixes).toEqual([{ id: idOf('2'), sealed: 'sealed grant' }]);
    expect(await answer('revoke', idOf('2'))).toEqual(['applied', 'applied-before']);
    expect((await find('s3')).prefixes).toEqual([]);
    // A person is asked again about an entry that was approved and has not started.
    expect(await find('s2')).toMatchObject({ grant: undefined, end: { state: 'revoked' } });
    expect(await ask('s2', { id: idOf('4') })).toMatchObject({ type: 'pending', id: idOf('4') });
    expect(await answer('revoke', idOf('2'))).toEqual(['over', 'applied-before']);
  });

  test('report waiting answers from the moment when they are written', async () => {
    await ask('s1');
    expect((await find('s1')).unapplied).toBe(0);
    await writeAnswer(redis, keys, 'sealed answer');
    expect((await find('s1')).unapplied).toBe(1);
  });

  test('answer no ended question, and give a repeated question another id', async () => {
    await ask('s1');
    await answer('deny', idOf('1'));
    expect(await find('s1')).toMatchObject({ grant: undefined, end: { state: 'denied' } });
    await ask('s2', { id: idOf('2') });
    expect(await answer('approve', idOf('1'), 'command')).toEqual(['over', 'applied-before']);
    expect(await counts()).toEqual([{ id: idOf('2'), count: 1 }]);
  });

  test('expire or withdraw each question once', async () => {
    await ask('s1', { timeoutMs: 0 });
    await ask('s2', { id: idOf('2'), timeoutMs: 60_000 });
    await expect.poll(() => expireQuestions(redis, keys)).toBe(1);
    expect(await expireQuestions(redis, keys)).toBe(0);
    expect(await readDecided(redis, keys)).toMatchObject([{ type: 'expire', asker: askerOf('s1') }]);
    expect(await counts()).toEqual([{ id: idOf('1'), count: 1 }]);
    await withdrawEnded(redis, keys, [askerOf('s2')]);
    expect(await counts()).toEqual([{ id: idOf('1'), count: 1 }]);
    await withdrawAskers(redis, keys, [askerOf('s2')]);
    await withdrawAskers(redis, keys, [askerOf('s2')]);
    expect(await counts()).toEqual([]);
    expect(await redis.hlen(keys.questions)).toBe(0);
  });

  test('expire for an overdue entry, though others still ask the same question', async () => {
    await ask('s1', { timeoutMs: 0 });
    await ask('s2');
    await expect.poll(() => expireQuestions(redis, keys)).toBe(1);
    // The question itself stays.
    expect(await redis.exists(approvalEndKey(keys, idOf('1')))).toBe(0);
    await answer('approve', idOf('1'), 'command');
    expect(await find('s1')).toMatchObject({ grant: undefined, end: { state: 'expired' } });
    expect(await ask('s1')).toEqual({ type: 'answered' });
    expect(await find('s2')).toMatchObject({ grant: { id: idOf('1') }, end: { state: 'approved' } });
  });

  test('repeat a question whose answer cannot be used', async () => {
    await ask('s1');
    await answer('approve', idOf('1'), 'command');
    expect(await ask('s1', { id: idOf('2') })).toEqual({ type: 'answered' });
    expect(await ask('s1', { id: idOf('2'), unanswered: true })).toMatchObject({ type: 'pending', id: idOf('2') });
  });

  test('grant nothing to the next generation of a session', async () => {
    await ask('s1');
    await answer('approve', idOf('1'), 'session');
    const next = { ...askerOf('s1'), generation: 'h' };
    const found = await findAnswer(redis, keys, next, {
      binding: 'b-next',
      hash: HASH,
      prefixes: true,
      directories: true,
    });
    expect(found).toMatchObject({ grant: undefined, end: undefined, prefixes: [] });
  });

  test('expire with the retention, except for grants of a prefix', async () => {
    const lasting = async () => {
      const all = await redis.keys(`${keys.prefix}*`);
      const times = await Promise.all(all.map((key) => redis.pttl(key)));
      return all.filter((_key, index) => times[index] === -1).map((key) => key.slice(keys.prefix.length));
    };
    await ask('s1');
    await answer('approve', idOf('1'), 'prefix');
    for (const nonce of ['2', '3', '4']) {
      await ask('s2', { id: idOf(nonce), binding: `b-${nonce}` });
      await answer('approve', idOf(nonce), nonce === '2' ? 'session' : 'command');
    }
    await ask('s3', { id: idOf('5') });
    await answer('deny', idOf('5'));
    await ask('s4', { id: idOf('6') });
    await withdrawAskers(redis, keys, [askerOf('s4')]);
    const decided = (await readDecided(redis, keys)).map(({ member }) => member);
    await forgetDecided(redis, keys, decided);
    expect((await lasting()).sort()).toEqual(['answers', `grant:${idOf('1')}`, 'grants']);
    // Each use by its session extends the expiry of an approval.
    const own = approvalGrantKey(keys, idOf('2'));
    await redis.pexpire(own, 5_000);
    const before = Number(await redis.zscore(keys.grants, idOf('2')));
    expect((await find('s2', 'b-next')).grant?.ofSession).toBe(true);
    expect(await redis.pttl(own)).toBeGreaterThan(5_000);
    expect(Number(await redis.zscore(keys.grants, idOf('2')))).toBeGreaterThanOrEqual(before);
    // The next approval removes grants that no longer exist from the list.
    await redis.zadd(keys.grants, 1, idOf('4'));
    await ask('s5', { id: idOf('7'), binding: 'b-7' });
    await answer('approve', idOf('7'), 'command');
    expect((await redis.zrange(keys.grants, '0', '-1')).sort()).toEqual(
      ['1', '2', '3', '7'].map((nonce) => idOf(nonce)),
    );
    await answer('revoke', idOf('1'));
    expect((await lasting()).sort()).toEqual(['answers', 'decided']);
    const fleet = fleetKeys(keys.namespace);
    const forget = async () => {
      await redis.zadd(fleet.asking, 1, keys.tenant);
      await forgetQuietTenants(redis, fleet, 1);
    };
    await writeAnswer(redis, keys, 'sealed answer');
    await forget();
    expect([await redis.xlen(keys.answers), await redis.zscore(fleet.asking, keys.tenant)]).toEqual([1, null]);
    await redis.xtrim(keys.answers, 'MAXLEN', 0);
    await forget();
    expect(await lasting()).toEqual(['decided']);
  });

  test('limit the questions of a tenant, and pause a session after four denials', async () => {
    await ask('s1', { mostPending: 1 });
    expect(await ask('s2', { mostPending: 1 })).toEqual({ type: 'too-many', pending: 1 });
    for (const nonce of ['1', '2', '3', '4']) {
      const asked = await ask('s1', { id: idOf(nonce), binding: `b-${nonce}` });
      await answer('deny', asked.type === 'pending' ? asked.id : '');
    }
    // The pause lasts ten seconds at first, and twice as long after each further denial.
    const denials = `${keys.prefix}denials:s1`;
    const quietMs = async () => {
      const asked = await ask('s1', { id: idOf('5'), binding: 'b-5' });
      const [seconds] = await redis.time();
      return asked.type === 'quiet' ? asked.until - Number(seconds) * 1_000 : 0;
    };
    expect(Math.abs((await quietMs()) - 10_000)).toBeLessThan(5_000);
    await redis.set(denials, '4 0');
    const later = await ask('s1', { id: idOf('6'), binding: 'b-6' });
    await answer('deny', later.type === 'pending' ? later.id : '');
    expect(Math.abs((await quietMs()) - 20_000)).toBeLessThan(5_000);
    expect(await ask('s2', { id: idOf('5') })).toMatchObject({ type: 'pending' });
  });

  test('let one host at a time announce a question, until it is announced or withdrawn', async () => {
    const claim = (leaseMs = 60_000) => claimAnnouncement(redis, keys, leaseMs);
    await ask('s1');
    await ask('s2', { id: idOf('2') });
    expect(await claim()).toEqual({ id: idOf('1'), attempt: 1 });
    expect(await claim()).toBeUndefined();
    await putOffAnnouncement(redis, keys, idOf('1'), 0);
    // A claimer that does not come back loses its claim.
    expect(await claim(0)).toEqual({ id: idOf('1'), attempt: 2 });
    expect(await claim()).toEqual({ id: idOf('1'), attempt: 3 });
    await forgetAnnouncement(redis, keys, idOf('1'));
    await putOffAnnouncement(redis, keys, idOf('1'), 0);
    expect(await claim()).toBeUndefined();
    await ask('s3', { id: idOf('3', 'b'.repeat(20)) });
    expect(await claim(0)).toEqual({ id: idOf('3', 'b'.repeat(20)), attempt: 1 });
    await withdrawAskers(redis, keys, [askerOf('s3')]);
    expect(await claim()).toBeUndefined();
    expect(await redis.exists(keys.unannounced, keys.announcements)).toBe(0);
  });
});

describe('an asker', () => {
  const record = () => recordKey(sessionKeys(keys.namespace, keys.tenant, 's1'), 'e');
  const state = () => sessionKeys(keys.namespace, keys.tenant, 's1').state;

  test.each<[string, () => Promise<unknown>]>([
    ['its entry runs', () => redis.hset(record(), 'state', 'running')],
    ['its entry has ended', () => redis.hset(record(), 'state', 'ended')],
    ['Redis has lost its entry', () => redis.del(record())],
    ['its session closes', () => redis.hset(state(), 'phase', 'closing')],
    ['its session has another generation', () => redis.hset(state(), 'generation', 'h')],
  ])('is not shown, and is withdrawn by upkeep, once %s', async (_what, change) => {
    await ask('s1');
    await withdrawEnded(redis, keys, [askerOf('s1')]);
    expect(await counts()).toEqual([{ id: idOf('1'), count: 1 }]);
    await change();
    expect(await counts()).toEqual([]);
    await withdrawEnded(redis, keys, [askerOf('s1')]);
    expect(await redis.exists(keys.questions, keys.pending, keys.asked)).toBe(0);
  });

  test('that is not an entry stops asking when its caller no longer waits', async () => {
    await ask('s1');
    await redis.del(record());
    await keepWanted(redis, keys, askerOf('s1'));
    await withdrawEnded(redis, keys, [askerOf('s1')]);
    expect(await counts()).toEqual([{ id: idOf('1'), count: 1 }]);
    await redis.del(wantedKey(keys, toAsker(askerOf('s1'))));
    await withdrawEnded(redis, keys, [askerOf('s1')]);
    expect(await counts()).toEqual([]);
  });
});

describe('the list of asking tenants', () => {
  test('keeps a tenant until upkeep has found it quiet for a while', async () => {
    const fleet = fleetKeys(keys.namespace);
    const listed = () => readAskingTenants(redis, fleet);
    await ask('s1');
    expect(await listed()).toEqual([{ tenant: 't1', isNew: true }]);
    await forgetQuietTenants(redis, fleet, 1_000);
    await keepAsking(redis, fleet, 't1', 500);
    expect(await listed()).toEqual([{ tenant: 't1', isNew: false }]);
    await ask('s2');
    await forgetQuietTenants(redis, fleet, 1_000);
    expect(await listed()).toEqual([{ tenant: 't1', isNew: true }]);
    await keepAsking(redis, fleet, 't1', 500);
    await forgetQuietTenants(redis, fleet, 1_000);
    expect(await listed()).toEqual([]);
    await keepAsking(redis, fleet, 't1', 2_000);
    expect(await listed()).toEqual([]);
  });
});
