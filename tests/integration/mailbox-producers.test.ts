import { cancel, close, finish, open, release, submit, take } from '@shellfleet/mailbox';
import { encodeWakeUp, idempotencyKey, payloadKey, recordKey, specKey, wakeUpsChannel } from '@shellfleet/protocol';

import { describe, expect, test } from 'vitest';
import { idsOf, keysWithoutExpiry, leftovers, outcomesOf, readEvents } from '../support/invariants.ts';
import { finishAs, newKeys, newSubmission, openSession, own, submitSome } from '../support/mailbox-session.ts';
import { generation, keys, redis, useMailbox } from '../support/open-mailbox.ts';

useMailbox();

/**
 * Returns the messages on a channel from now on. `settled` resolves when everything that was published before has
 * arrived.
 */
async function listen(channel: string) {
  const subscriber = redis.duplicate();
  const messages: string[] = [];
  await subscriber.subscribe(channel);
  subscriber.on('message', (_, message: string) => messages.push(message));
  return {
    messages,
    settled: () => subscriber.ping(),
    [Symbol.dispose]: () => subscriber.disconnect(),
  };
}

const sessionWakeUp = () => encodeWakeUp({ type: 'session', tenant: keys.tenant, session: keys.session });

describe('the mailbox call `open`', () => {
  test('records a generation that expires unless somebody submits to it or owns it', async () => {
    const [unused, used, owned] = [newKeys(), newKeys(), newKeys()];
    for (const fresh of [unused, used, owned]) await open(redis, fresh, () => 'sealed', 'd1');
    expect(await redis.pttl(unused.state)).toBeGreaterThan(86_000_000);
    await redis.pexpire(unused.state, 1_000);
    await open(redis, unused, () => 'sealed', 'd1');
    expect(await redis.pttl(unused.state)).toBeGreaterThan(86_000_000);
    await submit(redis, used, newSubmission((await redis.hget(used.state, 'generation')) ?? ''));
    await own(redis, owned);
    expect([await redis.pttl(used.state), await redis.pttl(used.stream), await redis.pttl(owned.state)]).toEqual([
      -1, -1, -1,
    ]);
  });

  test('creates a generation once, and attaches when it arrives twice', async () => {
    const fresh = newKeys();
    const first = await open(redis, fresh, () => 'sealed', 'd1');
    expect(first.type).toBe('created');
    expect(await open(redis, fresh, () => 'sealed otherwise', 'd1')).toEqual({ ...first, type: 'attached' });
    expect(await redis.get(specKey(fresh))).toBe('sealed');
  });

  test('refuses another spec with the stored one, unless any spec is acceptable', async () => {
    expect(await open(redis, keys, () => 'x', 'other')).toEqual({ type: 'conflict', spec: 'sealed spec', generation });
    expect(await open(redis, keys, () => 'x')).toEqual({ type: 'attached', generation, driven: false });
    expect(await open(redis, keys, () => 'x', 'other', 'any')).toEqual({ type: 'attached', generation, driven: false });
  });

  test('keeps the digest of a session that was created for any spec', async () => {
    const fresh = newKeys();
    const created = await open(redis, fresh, () => 'defaults', 'd1', 'any');
    expect(await open(redis, fresh, () => 'defaults', 'd1')).toEqual({ ...created, type: 'attached' });
  });

  test('reports a closing generation, and gives the next one a higher number', async () => {
    const owner = await own(redis, keys);
    await close(redis, keys, generation, false);
    expect(await open(redis, keys, () => 's', 'd')).toEqual({ type: 'closing' });
    await release(owner, 'queued');
    await redis.hset(keys.state, 'generation', '9999999999999');
    expect(await open(redis, keys, () => 's', 'd')).toEqual({
      type: 'created',
      generation: '10000000000000',
      driven: false,
    });
  });
});

describe('the mailbox call `submit`', () => {
  test('accepts an entry once, and reports each time whether the session needs a job', async () => {
    const submission = newSubmission(generation);
    const [first, second] = await Promise.all([submit(redis, keys, submission), submit(redis, keys, submission)]);
    expect([first, second]).toEqual([
      { type: 'accepted', waiting: 0, needsJob: true },
      { type: 'accepted-before', waiting: 1, needsJob: true },
    ]);
    await own(redis, keys, 'h3');
    expect(await submit(redis, keys, submission)).toEqual({ type: 'accepted-before', waiting: 1, needsJob: false });
    expect(await redis.llen(keys.queue)).toBe(1);
  });

  test('returns `accepted-before` when it is repeated after the end of its entry', async () => {
    const submission = newSubmission(generation);
    await submit(redis, keys, submission);
    await cancel(redis, keys, submission.entryId, 'no');
    expect(await submit(redis, keys, submission)).toMatchObject({ type: 'accepted-before' });
    expect(await leftovers(redis, keys)).toEqual([]);
  });

  test('returns the entry of an idempotency key, or a conflict for another payload', async () => {
    const first = newSubmission(generation, { idempotencyKey: 'k', payloadHash: 'a' });
    await submit(redis, keys, first);
    const again = newSubmission(generation, { idempotencyKey: 'k', payloadHash: 'a' });
    const other = newSubmission(generation, { idempotencyKey: 'k', payloadHash: 'b' });
    expect(await submit(redis, keys, again)).toEqual({ type: 'deduplicated', entryId: first.entryId });
    expect(await submit(redis, keys, other)).toEqual({ type: 'key-conflict', entryId: first.entryId });
    expect(await submit(redis, keys, first)).toMatchObject({ type: 'accepted-before' });
    expect(idsOf(await readEvents(redis, keys), 'command.accepted')).toEqual([first.entryId]);
  });

  test('keeps an idempotency key until the retention after the end of its entry', async () => {
    const ends = [
      (entryId: string) => cancel(redis, keys, entryId, 'no'),
      async (entryId: string) => {
        const owner = await own(redis, keys);
        await take(owner);
        await finish(owner, entryId, finishAs('success'));
      },
    ];
    for (const [index, end] of ends.entries()) {
      const key = idempotencyKey(keys, `k${index}`);
      const { entryId } = newSubmission(generation);
      await submit(redis, keys, newSubmission(generation, { entryId, idempotencyKey: `k${index}` }));
      expect(await redis.pttl(key)).toBe(-1);
      await end(entryId);
      expect(await redis.pttl(key)).toBeGreaterThan(86_000_000);
    }
  });

  test('is refused for another generation, a closed session and an unknown session', async () => {
    expect(await submit(redis, keys, newSubmission('1'))).toEqual({ type: 'closed' });
    await close(redis, keys, generation, false);
    expect(await submit(redis, keys, newSubmission(generation))).toEqual({ type: 'closed' });
    expect(await submit(redis, newKeys(), newSubmission(generation))).toEqual({ type: 'unknown-session' });
  });

  test('is refused when the maximum number of entries waits', async () => {
    await redis.rpush(keys.queue, ...Array.from({ length: 100_000 }, () => 'x'));
    expect(await submit(redis, keys, newSubmission(generation))).toEqual({ type: 'too-many', waiting: 100_000 });
    await redis.del(keys.queue);
  });

  test('is refused when the maximum number of bytes waits, until the first starts', async () => {
    const first = newSubmission(generation);
    const last = newSubmission(generation);
    await submit(redis, keys, first);
    await submit(redis, keys, last);
    const bytesTo = () => redis.hget(recordKey(keys, last.entryId), 'bytesTo');
    expect(await bytesTo()).toBe(String(first.payload.length + last.payload.length));
    for (const key of [keys.state, recordKey(keys, last.entryId)]) await redis.hset(key, 'bytesTo', 268_435_456);
    const refused = { type: 'too-large', waiting: 2, bytes: 268_435_456 };
    expect(await submit(redis, keys, newSubmission(generation))).toEqual(refused);
    expect(await redis.llen(keys.queue)).toBe(2);
    await take(await own(redis, keys));
    expect(await submit(redis, keys, newSubmission(generation))).toMatchObject({ type: 'accepted', waiting: 1 });
  });

  test('wakes an idle owner once, and never a busy one', async () => {
    const owner = await own(redis, keys, 'h5');
    using wakeUps = await listen(wakeUpsChannel(keys.namespace, keys.tenant, 'h5'));
    const [first = ''] = await submitSome(redis, keys, generation, 1);
    await wakeUps.settled();
    const wakeUp = { ...JSON.parse(sessionWakeUp()), entry: expect.objectContaining({ id: first, startedAt: '' }) };
    expect(wakeUps.messages.map((message) => JSON.parse(message))).toEqual([wakeUp]);
    await submitSome(redis, keys, generation, 1);
    await take(owner);
    await submitSome(redis, keys, generation, 1);
    await wakeUps.settled();
    expect(wakeUps.messages).toHaveLength(1);
  });

  test('publishes the id of the newest event once for each call', async () => {
    using feed = await listen(keys.feed);
    await submitSome(redis, keys, generation, 1);
    await feed.settled();
    expect(feed.messages).toEqual([(await readEvents(redis, keys)).at(-1)?.id]);
  });

  test('keeps binary and very long payloads unchanged', async () => {
    const payload = `${'\u0000é😀'.repeat(700_000)}`;
    const submission = newSubmission(generation, { payload });
    await submit(redis, keys, submission);
    const taken = await take(await own(redis, keys));
    expect(taken.type === 'started' && taken.entry.payload === payload).toBe(true);
  });
});

describe('the mailbox call `cancel`', () => {
  test('ends a waiting entry immediately, and reports `ended-before` when it arrives twice', async () => {
    const [a = '', b = ''] = await submitSome(redis, keys, generation, 2);
    const cancelled = await cancel(redis, keys, a, 'no');
    const event = (await readEvents(redis, keys)).at(-1);
    expect(cancelled).toEqual({ type: 'ended', event: event?.id, inbox: 'p1', needsJob: false });
    expect(await cancel(redis, keys, a, 'no')).toEqual({ type: 'ended-before' });
    expect(await redis.lrange(keys.queue, 0, -1)).toEqual([b]);
    expect(await redis.get(payloadKey(keys, a))).toBeNull();
  });

  test('marks a running entry, which can then only end as a cancellation', async () => {
    const [id = ''] = await submitSome(redis, keys, generation, 1);
    const owner = await own(redis, keys, 'h4');
    await take(owner);
    expect(await cancel(redis, keys, id, 'first reason')).toEqual({ type: 'marked', host: 'h4', generation });
    expect(await cancel(redis, keys, id, 'second reason')).toEqual({ type: 'marked', host: 'h4', generation });
    expect(await take(owner)).toMatchObject({ type: 'running', entry: { cancelReason: 'first reason' } });
    for (const outcome of ['success', 'failure', 'timeout', 'lost', 'error'] as const)
      expect(await finish(owner, id, finishAs(outcome))).toEqual({ type: 'cancelled', reason: 'first reason' });
    // The Result must have the reason.
    expect((await finish(owner, id, finishAs('cancellation'))).type).toBe('cancelled');
    const told = { ...finishAs('cancellation'), cancelReason: 'first reason' };
    expect((await finish(owner, id, told)).type).toBe('finished');
  });

  test('changes nothing for an ended or unknown entry, and reports which it is', async () => {
    const [id = ''] = await submitSome(redis, keys, generation, 1);
    const owner = await own(redis, keys);
    await take(owner);
    await finish(owner, id, finishAs('success'));
    expect(await cancel(redis, keys, id, 'late')).toEqual({ type: 'ended-before' });
    expect(await cancel(redis, keys, '01UNKNOWN', 'what')).toEqual({ type: 'unknown' });
  });

  test('leaves one end, which both calls report, when a finish runs at the same time', async () => {
    for (let round = 0; round < 50; round += 1) {
      const [id = ''] = await submitSome(redis, keys, generation, 1);
      const owner = await own(redis, keys);
      await take(owner);
      const other = redis.duplicate();
      const [finished, cancelled] = await Promise.all([
        finish(owner, id, finishAs('success')),
        cancel(other, keys, id, 'race'),
      ]);
      other.disconnect();
      expect([finished.type, cancelled.type]).toEqual(
        finished.type === 'finished' ? ['finished', 'ended-before'] : ['cancelled', 'marked'],
      );
      if (finished.type === 'cancelled')
        await finish(owner, id, { ...finishAs('cancellation'), cancelReason: finished.reason });
    }
  });
});

describe('the mailbox call `close`', () => {
  test('ends the generation and all waiting entries immediately without a host', async () => {
    const ids = await submitSome(redis, keys, generation, 3);
    const closed = await close(redis, keys, generation, false);
    expect(closed).toMatchObject({ type: 'closed', host: '', ended: ids.map((entryId) => ({ entryId, inbox: 'p1' })) });
    expect(outcomesOf(await readEvents(redis, keys))).toEqual(new Map(ids.map((id) => [id, 'cancellation'])));
    expect(await keysWithoutExpiry(redis, keys.prefix)).toEqual([]);
  });

  test('wakes the host of a running entry, which can only end as a cancellation', async () => {
    const owner = await own(redis, keys, 'h6');
    const [running = '', waiting = ''] = await submitSome(redis, keys, generation, 2);
    await take(owner);
    using wakeUps = await listen(wakeUpsChannel(keys.namespace, keys.tenant, 'h6'));
    expect(await close(redis, keys, generation, false)).toMatchObject({
      type: 'closing',
      host: 'h6',
      ended: [{ entryId: waiting }],
    });
    const reason = 'session closed';
    expect(await finish(owner, running, finishAs('success', true))).toEqual({ type: 'cancelled', reason });
    const told = { ...finishAs('cancellation', true), cancelReason: reason };
    expect(await finish(owner, running, told)).toMatchObject({
      next: { type: 'empty', closing: true },
    });
    expect(await release(owner, 'queued')).toEqual({ type: 'released', phase: 'closed' });
    await wakeUps.settled();
    expect(wakeUps.messages).toEqual([sessionWakeUp()]);
    expect((await readEvents(redis, keys)).at(-1)?.type).toBe('session.closed');
    expect(await keysWithoutExpiry(redis, keys.prefix)).toEqual([]);
  });

  test('ends everything immediately if the host is unreachable, and fences that host', async () => {
    const owner = await own(redis, keys, 'h6');
    const [running = '', waiting = ''] = await submitSome(redis, keys, generation, 2);
    await take(owner);
    expect(await close(redis, keys, generation, true)).toMatchObject({
      type: 'closed',
      ended: [{ entryId: waiting }, { entryId: running }],
    });
    expect(await finish(owner, running, finishAs('success', true))).toEqual({ type: 'fenced' });
    expect(await leftovers(redis, keys)).toEqual([]);
    expect(await keysWithoutExpiry(redis, keys.prefix)).toEqual([]);
  });

  test('does nothing when it is repeated or names an unknown generation or session', async () => {
    expect(await close(redis, keys, '1', true)).toEqual({
      type: 'closed-before',
      generation: '1',
      host: '',
      signed: '',
      ended: [],
    });
    expect((await close(redis, keys, generation, true)).type).toBe('closed');
    expect((await close(redis, keys, generation, true)).type).toBe('closed-before');
    expect((await close(redis, newKeys(), undefined, true)).type).toBe('closed-before');
    expect(idsOf(await readEvents(redis, keys), 'session.closed')).toHaveLength(1);
  });

  test('does not affect the next generation when it arrives late', async () => {
    await close(redis, keys, generation, false);
    const next = await openSession(redis, keys);
    expect((await close(redis, keys, generation, true)).type).toBe('closed-before');
    expect(await submit(redis, keys, newSubmission(next))).toMatchObject({ type: 'accepted' });
    expect((await close(redis, keys, undefined, true)).type).toBe('closed');
  });

  test('lets other calls run during a long close, which a later close can complete', async () => {
    const pipeline = redis.pipeline();
    for (let index = 0; index < 5_000; index += 1) {
      pipeline.hset(recordKey(keys, `e${index}`), { state: 'waiting', inbox: 'p1', acceptedAt: 1 });
      pipeline.rpush(keys.queue, `e${index}`);
    }
    await pipeline.exec();
    const closing = close(redis, keys, generation, false);
    const between = await submit(redis, keys, newSubmission(generation));
    expect(between).toEqual({ type: 'closed' });
    expect(await redis.llen(keys.queue)).toBeGreaterThan(0);
    expect((await closing).ended).toHaveLength(5_000);
    expect(await leftovers(redis, keys)).toEqual([]);
  });

  test('ends an entry, or leaves it to a take that runs at the same time', async () => {
    for (let round = 0; round < 50; round += 1) {
      const raced = newKeys();
      const [id = ''] = await submitSome(redis, raced, await openSession(redis, raced), 1);
      const owner = await own(redis, raced);
      const other = redis.duplicate();
      const [closed, taken] = await Promise.all([close(other, raced, undefined, false), take(owner)]);
      other.disconnect();
      expect([closed.ended.length, taken.type]).toEqual(taken.type === 'started' ? [0, 'started'] : [1, 'empty']);
      const told = { ...finishAs('cancellation'), cancelReason: 'session closed' };
      if (taken.type === 'started') await finish(owner, id, told);
      await release(owner, 'queued');
      expect(outcomesOf(await readEvents(redis, raced))).toEqual(new Map([[id, 'cancellation']]));
    }
  });
});
