import {
  adopt,
  answerHeld,
  cancel,
  clear,
  close,
  finish,
  type HeldDecision,
  hold,
  type Owner,
  peek,
  readStoredSession,
  release,
  submit,
  sweep,
  take,
} from '@shellfleet/mailbox';
import { encodeWakeUp, payloadKey, recordKey, wakeUpsChannel } from '@shellfleet/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { idsOf, keysWithoutExpiry, outcomesOf, readEvents } from '../support/invariants.ts';
import { finishAs, newSubmission, own, resultOf, submitSome } from '../support/mailbox-session.ts';
import { generation, keys, redis, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

// MAILBOX-5: An entry that is not cleared under the owner's rules is not started. A held head waits for an answer, and
// is then decided again.

const RULES = 'digest-1';
const DENY: HeldDecision = { type: 'deny', result: resultOf('denial', { reason: 'approver' }) };
let owner: Owner;
beforeEach(async () => {
  owner = { ...(await own(redis, keys)), admission: RULES };
});

const typesOf = async () => (await readEvents(redis, keys)).map(({ type }) => type);
const submitOne = async () => (await submitSome(redis, keys, generation, 1))[0] ?? '';

async function holdOne(): Promise<string> {
  const id = await submitOne();
  expect(await hold(owner, id, RULES, { reason: 'ask' })).toEqual({ type: 'held' });
  return id;
}

describe('an entry that is not cleared', () => {
  test('is returned unstarted by `take` and by the end of the previous entry', async () => {
    const [first = '', second = ''] = await submitSome(redis, keys, generation, 2);
    expect(await take(owner)).toMatchObject({
      type: 'needs-admission',
      entry: { id: first, payload: 'sealed payload', startedAt: 0 },
    });
    expect(await clear(owner, first, RULES)).toMatchObject({ type: 'started', entry: { id: first } });
    expect(await finish(owner, first, finishAs('success', true))).toMatchObject({
      next: { type: 'needs-admission', entry: { id: second } },
    });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([first]);
  });

  test('is started by an owner that admits everything', async () => {
    const id = await submitOne();
    expect(await take({ ...owner, admission: undefined })).toMatchObject({ type: 'started', entry: { id } });
  });

  test('is decided again after an answer, even under the same rules', async () => {
    const id = await holdOne();
    await answerHeld(redis, keys, id, { type: 'release' });
    expect(await take(owner)).toMatchObject({ type: 'needs-admission', entry: { id } });
    expect(await take({ ...owner, admission: 'digest-2' })).toMatchObject({ type: 'needs-admission' });
    expect(await clear(owner, id, RULES)).toMatchObject({ type: 'started', entry: { id } });
  });

  test('is returned as overdue after its start deadline', async () => {
    const id = await submitOne();
    await redis.hset(recordKey(keys, id), 'deadline', 1);
    expect(await take(owner)).toMatchObject({ type: 'overdue', entry: { id } });
    expect(await clear(owner, id, RULES)).toMatchObject({ type: 'overdue', entry: { id } });
    expect(await typesOf()).not.toContain('command.started');
  });

  test('can be ended as a denial without starting, and the next one follows', async () => {
    const [first = '', second = ''] = await submitSome(redis, keys, generation, 2);
    expect(await finish(owner, first, finishAs('denial', true))).toMatchObject({
      type: 'finished',
      next: { type: 'needs-admission', entry: { id: second } },
    });
    expect(await typesOf()).not.toContain('command.started');
  });
});

describe('the mailbox call `clear`', () => {
  test('returns the same running entry when it is called twice', async () => {
    const id = await submitOne();
    await clear(owner, id, RULES);
    expect(await clear(owner, id, RULES)).toMatchObject({ type: 'running', entry: { id } });
    expect(idsOf(await readEvents(redis, keys), 'command.started')).toEqual([id]);
  });

  test('starts nothing after its verdict has expired by the clock of Redis', async () => {
    const id = await submitOne();
    const [seconds = 0] = (await redis.time()).map(Number);
    expect(await clear(owner, id, RULES, seconds * 1_000 - 1)).toEqual({ type: 'too-late' });
    expect(await take(owner)).toMatchObject({ type: 'needs-admission', entry: { id } });
    expect(await clear(owner, id, RULES, seconds * 1_000 + 60_000)).toMatchObject({ type: 'started', entry: { id } });
  });

  test('starts only the head of an open generation, and not while it is held', async () => {
    const held = await holdOne();
    const behind = await submitOne();
    expect(await clear(owner, held, RULES)).toEqual({ type: 'not-head' });
    expect(await clear(owner, behind, RULES)).toEqual({ type: 'not-head' });
    await redis.hset(keys.state, 'phase', 'closing');
    expect(await clear(owner, held, RULES)).toEqual({ type: 'empty', closing: true });
    expect(await typesOf()).not.toContain('command.started');
  });

  test.each(['clear', 'hold'] as const)('is fenced off for an earlier owner: %s', async (call) => {
    const id = await submitOne();
    const before = owner;
    await own(redis, keys, 'h2');
    const answer = call === 'clear' ? await clear(before, id, RULES) : await hold(before, id, RULES, {});
    expect(answer).toEqual({ type: 'fenced' });
    expect(await clear({ ...before, fence: before.fence + 1 }, id, RULES)).toEqual({ type: 'fenced' });
  });
});

describe('a held head', () => {
  test('is held once, and is not handed out to any owner', async () => {
    const id = await holdOne();
    expect(await hold(owner, id, RULES, {})).toEqual({ type: 'held' });
    expect(await take(owner)).toEqual({ type: 'empty' });
    expect(await take({ ...owner, admission: undefined })).toEqual({ type: 'empty' });
    expect(await peek(owner)).toMatchObject({ entry: { id }, runnable: false });
    expect(await typesOf()).toEqual(['command.accepted', 'approval.requested']);
  });

  test('needs neither an owner nor a job, whatever is submitted behind it', async () => {
    const id = await holdOne();
    expect(await submit(redis, keys, newSubmission(generation))).toMatchObject({ type: 'accepted', needsJob: false });
    expect(await release(owner, 'queued')).toEqual({ type: 'released', phase: 'open' });
    const behind = newSubmission(generation);
    expect(await submit(redis, keys, behind)).toMatchObject({ type: 'accepted', needsJob: false });
    expect(await submit(redis, keys, behind)).toMatchObject({ type: 'accepted-before', needsJob: false });
    expect(await sweep(redis, keys)).toMatchObject({ waiting: 3, hasWork: false });
    expect(await readStoredSession(redis, keys)).toMatchObject({ waiting: 3, held: id, hasWork: false });
    expect(await answerHeld(redis, keys, id, { type: 'release' })).toEqual({ type: 'released', needsJob: true });
    expect(await sweep(redis, keys)).toMatchObject({ hasWork: true });
    expect(await readStoredSession(redis, keys)).toMatchObject({ held: '', hasWork: true });
  });

  test('stays held under the next owner, which decides about it after its release', async () => {
    const id = await holdOne();
    const next = { ...(await own(redis, keys, 'h2')), admission: RULES };
    expect(await take(next)).toEqual({ type: 'empty' });
    await answerHeld(redis, keys, id, { type: 'release' });
    expect(await take(next)).toMatchObject({ type: 'needs-admission', entry: { id } });
    expect(await clear(next, id, RULES)).toMatchObject({ type: 'started', entry: { id, host: 'h2' } });
  });

  test('is not held again by a repeated call after its release', async () => {
    const id = await submitOne();
    await hold(owner, id, RULES, {}, 'call-1');
    await answerHeld(redis, keys, id, { type: 'release' });
    expect(await hold(owner, id, RULES, {}, 'call-1')).toEqual({ type: 'held' });
    expect(await take(owner)).toMatchObject({ type: 'needs-admission', entry: { id } });
    expect(await hold(owner, id, RULES, {}, 'call-2')).toEqual({ type: 'held' });
    expect(await take(owner)).toEqual({ type: 'empty' });
  });

  test('can be ended by its host', async () => {
    const id = await holdOne();
    const behind = await submitOne();
    await finish(owner, id, finishAs('error'));
    expect(await readStoredSession(redis, keys)).toMatchObject({ waiting: 1, held: '', hasWork: true });
    expect(await take(owner)).toMatchObject({ type: 'needs-admission', entry: { id: behind } });
  });

  test('must be first in the mailbox, while nothing runs and the generation is open', async () => {
    const [first = '', second = ''] = await submitSome(redis, keys, generation, 2);
    expect(await hold(owner, second, RULES, {})).toEqual({ type: 'not-head' });
    await clear(owner, first, RULES);
    expect(await hold(owner, second, RULES, {})).toEqual({ type: 'not-head' });
    await finish(owner, first, finishAs('success'));
    await redis.hset(keys.state, 'phase', 'closing');
    expect(await hold(owner, second, RULES, {})).toEqual({ type: 'not-head' });
  });
});

describe('an answer to a held head', () => {
  test('denies the entry once, without starting it, however often it arrives', async () => {
    const id = await holdOne();
    const answered = await answerHeld(redis, keys, id, DENY, { by: 'alice' }, 'call-1');
    expect(answered).toMatchObject({ type: 'denied', inbox: 'p1', needsJob: false });
    expect(await answerHeld(redis, keys, id, DENY, {}, 'call-1')).toEqual(answered);
    expect(await answerHeld(redis, keys, id, { type: 'release' }, {}, 'call-2')).toEqual({ type: 'not-held' });
    const events = await readEvents(redis, keys);
    expect(outcomesOf(events)).toEqual(new Map([[id, 'denial']]));
    expect(events.filter(({ type }) => type === 'approval.answered').map(({ data }) => data.toString())).toEqual([
      '{"by":"alice"}',
    ]);
    expect(await redis.get(payloadKey(keys, id))).toBeNull();
    expect(await typesOf()).not.toContain('command.started');
  });

  test('can cancel what waits behind the denied entry', async () => {
    const id = await holdOne();
    const [behind = '', last = ''] = await submitSome(redis, keys, generation, 2);
    const answered = await answerHeld(redis, keys, id, { ...DENY, abort: true }, {});
    expect(answered).toMatchObject({
      type: 'denied',
      needsJob: false,
      behind: [
        { inbox: 'p1', entryId: behind },
        { inbox: 'p1', entryId: last },
      ],
    });
    expect(outcomesOf(await readEvents(redis, keys))).toEqual(
      new Map([
        [id, 'denial'],
        [behind, 'cancellation'],
        [last, 'cancellation'],
      ]),
    );
  });

  test('cancels thousands of waiting entries, of which none starts during that time', async () => {
    const id = await holdOne();
    const more = await submitSome(redis, keys, generation, 2_100);
    const answered = await answerHeld(redis, keys, id, { ...DENY, abort: true }, {});
    expect(answered).toMatchObject({ type: 'denied', needsJob: false });
    const behind = answered.type === 'denied' ? answered.behind.map(({ entryId }) => entryId) : [];
    expect(behind).toEqual(more);
    const outcomes = outcomesOf(await readEvents(redis, keys));
    expect([outcomes.get(id), outcomes.size]).toEqual(['denial', 2_101]);
    expect((await typesOf()).filter((type) => type === 'command.started')).toEqual([]);
  });

  test('releases the entry once, and returns the same when it is repeated', async () => {
    const id = await holdOne();
    await release(owner, 'queued');
    const answered = await answerHeld(redis, keys, id, { type: 'release' }, {}, 'call-1');
    expect(answered).toEqual({ type: 'released', needsJob: true });
    expect(await answerHeld(redis, keys, id, { type: 'release' }, {}, 'call-1')).toEqual(answered);
    expect(await answerHeld(redis, keys, id, DENY, {}, 'call-2')).toEqual({ type: 'not-held' });
    expect((await typesOf()).filter((type) => type === 'approval.answered')).toHaveLength(1);
  });

  test('is refused for an entry that is not held, waits or is unknown', async () => {
    await holdOne();
    const behind = await submitOne();
    expect(await answerHeld(redis, keys, behind, { type: 'release' })).toEqual({ type: 'not-held' });
    expect(await answerHeld(redis, keys, 'none', DENY)).toEqual({ type: 'unknown' });
    expect(outcomesOf(await readEvents(redis, keys)).size).toBe(0);
  });

  test.each(['releases', 'denies'])('wakes the host of the session when it %s', async (how) => {
    const id = await holdOne();
    await submitOne();
    const received = await receive(async () => {
      await answerHeld(redis, keys, id, how === 'releases' ? { type: 'release' } : DENY);
    });
    expect(received).toEqual([sessionWakeUp()]);
  });
});

describe('the end of a held head', () => {
  test('wakes the host for the next entry after a cancellation', async () => {
    const id = await holdOne();
    const next = await submitOne();
    const received = await receive(async () => {
      expect(await cancel(redis, keys, id, 'no')).toMatchObject({ type: 'ended', needsJob: false });
    });
    expect(received).toEqual([sessionWakeUp()]);
    await hold(owner, next, RULES, {});
    await submitOne();
    await release(owner, 'queued');
    expect(await cancel(redis, keys, next, 'no')).toMatchObject({ type: 'ended', needsJob: true });
    expect(await answerHeld(redis, keys, next, { type: 'release' })).toEqual({ type: 'not-held' });
  });

  test('wakes nobody after a cancellation if nothing waits', async () => {
    const id = await holdOne();
    const received = await receive(async () => {
      expect(await cancel(redis, keys, id, 'no')).toMatchObject({ type: 'ended', needsJob: false });
    });
    expect(received).toEqual([]);
  });

  test('wakes the host for the next entry after its start deadline', async () => {
    const id = await holdOne();
    const behind = await submitOne();
    await redis.hset(recordKey(keys, id), 'deadline', 1);
    const received = await receive(async () => {
      expect(await sweep(redis, keys)).toMatchObject({ ended: [{ entryId: id }], hasWork: true });
    });
    expect(received).toEqual([sessionWakeUp()]);
    expect(await take(owner)).toMatchObject({ type: 'needs-admission', entry: { id: behind } });
    expect(outcomesOf(await readEvents(redis, keys))).toEqual(new Map([[id, 'timeout']]));
  });

  test('is a cancellation if the session closes, and leaves no held head', async () => {
    const id = await holdOne();
    await release(owner, 'queued');
    expect(await close(redis, keys, generation, false)).toMatchObject({ type: 'closed', ended: [{ entryId: id }] });
    expect(await answerHeld(redis, keys, id, DENY)).toEqual({ type: 'not-held' });
    expect(outcomesOf(await readEvents(redis, keys))).toEqual(new Map([[id, 'cancellation']]));
    expect(await keysWithoutExpiry(redis, keys.prefix)).toEqual([]);
  });
});

describe('an adopter', () => {
  test('finds no running entry in a session whose head is held', async () => {
    await holdOne();
    expect(await adopt(owner)).toMatchObject({ type: 'adopted', waiting: 1 });
    expect((await adopt(owner)) as object).not.toHaveProperty('running');
  });
});

const sessionWakeUp = () => encodeWakeUp({ type: 'session', tenant: keys.tenant, session: keys.session });

/** Returns the wake-ups that the host receives during `act`. */
async function receive(act: () => Promise<void>): Promise<string[]> {
  const received: string[] = [];
  const listener = redis.duplicate();
  listener.on('message', (_channel: string, message: string) => received.push(message));
  await listener.subscribe(wakeUpsChannel(keys.namespace, keys.tenant, 'h1'));
  await act();
  await listener.ping();
  listener.disconnect();
  return received;
}
