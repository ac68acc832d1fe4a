import { cancel, close, finish, type Submitted, submit, take } from '@shellfleet/mailbox';
import { ALIVE_MS, hostKeys, LIMITS, wakeUpsChannel } from '@shellfleet/protocol';
import { countCalls } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { idsOf, readEvents } from '../support/invariants.ts';
import { finishAs, newSubmission, openSession, own } from '../support/mailbox-session.ts';
import { generation, keys, redis, startOne, useMailbox } from '../support/open-mailbox.ts';
import { startOwnRedis } from '../support/own-redis.ts';

useMailbox();

describe('entries that are submitted in one turn', () => {
  let producer: Redis;
  let calls: string[];

  beforeEach(async () => {
    producer = redis.duplicate();
    calls = [];
    countCalls(producer, { called: (call) => calls.push(call), failed: () => {} });
    await producer.ping();
    calls.length = 0;
  });
  afterEach(() => producer.disconnect());

  const submissions = (count: number) => Array.from({ length: count }, () => newSubmission(generation));
  const accepted = (waiting: number): Submitted => ({ type: 'accepted', waiting, needsJob: true });
  const waitingIds = () => redis.lrange(keys.queue, 0, -1);

  test('share a call of at most 32 and are accepted in order', async () => {
    const entries = submissions(70);
    const replies = await Promise.all(entries.map((entry) => submit(producer, keys, entry)));
    expect(replies).toEqual(entries.map((_, index) => accepted(index)));
    expect(await waitingIds()).toEqual(entries.map(({ entryId }) => entryId));
    expect(calls).toEqual(['producer/submit', 'producer/submit', 'producer/submit']);
  });

  test('do not share a call once their payloads have 262,144 characters', async () => {
    const [first, second, third] = submissions(3);
    const large = { ...first!, payload: 'x'.repeat(262_144) };
    await Promise.all([large, second!, third!].map((entry) => submit(producer, keys, entry)));
    expect(await waitingIds()).toEqual([first, second, third].map((entry) => entry!.entryId));
    expect(calls).toEqual(['producer/submit', 'producer/submit']);
  });

  test('get an answer each', async () => {
    const keyed = (payloadHash: string) => newSubmission(generation, { idempotencyKey: 'key', payloadHash });
    const [first, same, other] = [keyed('a'), keyed('a'), keyed('b')];
    const [late, again] = [newSubmission('another generation'), first];
    const entries = [first, same, other, again];
    const replies = await Promise.all([...entries, late].map((entry) => submit(producer, keys, entry)));
    expect(replies).toEqual([
      accepted(0),
      { type: 'deduplicated', entryId: first.entryId },
      { type: 'key-conflict', entryId: first.entryId },
      { type: 'accepted-before', waiting: 1, needsJob: true },
      { type: 'closed' },
    ]);
    expect(calls).toEqual(['producer/submit', 'producer/submit']);
  });

  test('refuses one whose payload does not fit and accepts a smaller one behind it', async () => {
    const half = 'x'.repeat(LIMITS.queuedBytesPerSession / 2);
    const [first, second, third] = submissions(3);
    const entries = [{ ...first!, payload: half }, { ...second!, payload: `${half}x` }, third!];
    expect(await Promise.all(entries.map((entry) => submit(producer, keys, entry)))).toEqual([
      accepted(0),
      { type: 'too-large', waiting: 1, bytes: half.length },
      accepted(1),
    ]);
    expect(await waitingIds()).toEqual([first?.entryId, third?.entryId]);
  });

  test('leave before a later call on their session, and those after it behind it', async () => {
    const [first, second, third] = submissions(3);
    const replies = await Promise.all([
      submit(producer, keys, first!),
      submit(producer, keys, second!),
      cancel(producer, keys, first!.entryId, 'not wanted'),
      close(producer, keys, generation, false),
      submit(producer, keys, third!),
    ]);
    expect(replies).toMatchObject([
      accepted(0),
      accepted(1),
      { type: 'ended' },
      { type: 'closed', ended: [{ entryId: second?.entryId }] },
      { type: 'closed' },
    ]);
  });

  test('are in Redis before a later command on the connection, also before it ends', async () => {
    const [first, second] = submissions(2);
    const submits = [submit(producer, keys, first!)];
    const length = producer.llen(keys.queue);
    submits.push(submit(producer, keys, second!));
    await producer.quit();
    expect(await length).toBe(1);
    expect(await Promise.all(submits)).toEqual([accepted(0), accepted(1)]);
  });

  test('stay behind earlier ones that wait until Redis has the scripts again', async () => {
    await using own = await startOwnRedis();
    const lost = await openSession(own.redis, keys);
    const [first, second] = [newSubmission(lost), newSubmission(lost)];
    await own.redis.script('FLUSH');
    const replies = [submit(own.redis, keys, first)];
    const load = own.redis.script.bind(own.redis) as (...args: unknown[]) => Promise<unknown>;
    let loading: Promise<unknown> | undefined;
    own.redis.script = ((...args: unknown[]) => {
      if (loading === undefined)
        queueMicrotask(() => void loading?.then(() => replies.push(submit(own.redis, keys, second))));
      loading = load(...args);
      return loading;
    }) as typeof own.redis.script;
    await replies[0];
    expect(await Promise.all(replies)).toEqual([accepted(0), accepted(1)]);
    expect(await own.redis.lrange(keys.queue, 0, -1)).toEqual([first.entryId, second.entryId]);
  });

  test('have their own call at once if their sending must be known', async () => {
    const [first, second, third] = submissions(3);
    let sentAfter: string[] = [];
    const replies = [
      submit(producer, keys, first!),
      submit(producer, keys, second!, () => {
        sentAfter = [...calls];
      }),
      submit(producer, keys, third!),
    ];
    expect(sentAfter).toEqual(['producer/submit', 'producer/submit']);
    expect(await Promise.all(replies)).toEqual([accepted(0), accepted(1), accepted(2)]);
    expect(calls).toHaveLength(3);
  });

  test('are refused together when Redis refuses their call', async () => {
    await redis.set(keys.state, 'no hash');
    const replies = await Promise.allSettled(submissions(3).map((entry) => submit(producer, keys, entry)));
    const refusal = { status: 'rejected', reason: expect.objectContaining({ code: 'QUEUE_UNAVAILABLE' }) };
    expect(replies).toEqual([refusal, refusal, refusal]);
  });

  test('are refused together when their call cannot be made', async () => {
    const problem = new Error('the file of the script is missing');
    producer.evalsha = () => {
      throw problem;
    };
    const replies = await Promise.allSettled(submissions(2).map((entry) => submit(producer, keys, entry)));
    const refusal = { status: 'rejected', reason: problem };
    expect(replies).toEqual([refusal, refusal]);
  });

  test('are refused alone if Redis cannot accept them, and the others are accepted', async () => {
    const entries = [{}, { idempotencyKey: 'spoiled' }, {}].map((rest) => newSubmission(generation, rest));
    await redis.lpush(`${keys.prefix}key:spoiled`, 'no text');
    const replies = await Promise.allSettled(entries.map((entry) => submit(producer, keys, entry)));
    const reason = expect.objectContaining({
      code: 'QUEUE_UNAVAILABLE',
      message: expect.stringContaining('WRONGTYPE'),
    });
    expect(replies).toEqual([
      { status: 'fulfilled', value: accepted(0) },
      { status: 'rejected', reason },
      { status: 'fulfilled', value: accepted(1) },
    ]);
    expect(await waitingIds()).toEqual([entries[0]?.entryId, entries[2]?.entryId]);
    expect(await redis.hget(keys.state, 'bytesTo')).toBe(String(2 * entries[0]!.payload.length));
  });

  test('of which Redis has accepted one before are truthful when it is full', async () => {
    await using own = await startOwnRedis();
    const full = await openSession(own.redis, keys);
    const [before, after] = [newSubmission(full), newSubmission(full)];
    await submit(own.redis, keys, before);
    await own.redis.config('SET', 'maxmemory', '1');
    const replies = await Promise.allSettled([before, after].map((entry) => submit(own.redis, keys, entry)));
    expect(replies).toEqual([
      { status: 'fulfilled', value: { type: 'accepted-before', waiting: 1, needsJob: true } },
      { status: 'rejected', reason: expect.objectContaining({ code: 'QUEUE_UNAVAILABLE', context: { full: true } }) },
    ]);
  });

  // MAILBOX-6
  test('start the first in the name of an idle owner, and the others wait', async () => {
    const owner = { ...(await own(redis, keys)), boot: 'boot-1' };
    const subscriber = redis.duplicate();
    await subscriber.subscribe(wakeUpsChannel(keys.namespace, keys.tenant, owner.host));
    await redis.set(hostKeys(keys.namespace, owner.host).alive, '{}', 'PX', ALIVE_MS);
    await redis.set(hostKeys(keys.namespace, owner.host).boot, 'machine-1 boot-1');
    const { id } = await startOne(owner);
    await finish(owner, id, finishAs('success', true));
    const entries = submissions(3);
    await Promise.all(entries.map((entry) => submit(producer, keys, entry)));
    subscriber.disconnect();
    const [first, ...others] = entries.map(({ entryId }) => entryId);
    const started = idsOf(await readEvents(redis, keys), 'command.started');
    expect({ started, waiting: await waitingIds() }).toEqual({ started: [id, first], waiting: others });
    expect(await take(owner)).toMatchObject({ type: 'running', entry: { id: first } });
  });
});
