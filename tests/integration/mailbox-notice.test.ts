import { finish, keepInbox, submit, take } from '@shellfleet/mailbox';
import { inboxKey, type SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  connectTestRedis,
  finishAs,
  newKeys,
  newSubmission,
  openSession,
  own,
  resultOf,
  type TestRedis,
} from '../support/mailbox-session.ts';

let connected: TestRedis;
let redis: Redis;
let keys: SessionKeys;

beforeAll(async () => {
  connected = await connectTestRedis();
  redis = connected.redis;
});
afterAll(() => connected[Symbol.asyncDispose]());
beforeEach(() => {
  keys = newKeys();
});

const inbox = () => inboxKey(keys.namespace, 'p1');
const noticesOf = async () => (await redis.xrange(inbox(), '-', '+')).slice(1).map(([, fields]) => fields);

async function startOne() {
  const generation = await openSession(redis, keys);
  const owner = await own(redis, keys);
  await submit(redis, keys, newSubmission(generation));
  const taken = await take(owner);
  if (taken.type !== 'started') throw new Error(`nothing was started: ${taken.type}`);
  return { owner, id: taken.entry.id };
}

describe('the notice of an end', () => {
  test('reaches the inbox with the step that ends the entry, once, also when the call arrives twice', async () => {
    await keepInbox(redis, keys.namespace, 'p1');
    const { owner, id } = await startOne();
    const end = { ...finishAs('success'), inbox: 'p1' };
    const finished = await finish(owner, id, end);
    await finish(owner, id, end);
    if (finished.type !== 'finished') throw new Error(finished.type);
    const [t, tenant, s, session, e, entry, v, event, r, json] = (await noticesOf())[0] ?? [];
    expect([t, tenant, s, session, e, entry, v, event]).toEqual(['t', 't1', 's', 's1', 'e', id, 'v', finished.event]);
    expect([r, JSON.parse(json ?? '')]).toEqual(['r', expect.objectContaining({ outcome: 'success', exitCode: 0 })]);
    expect(await noticesOf()).toHaveLength(1);
  });

  test('follows the fence: what a host that was replaced ends is told to nobody (invariant 1)', async () => {
    await keepInbox(redis, keys.namespace, 'p1');
    const { owner, id } = await startOne();
    await own(redis, keys, 'h2');
    expect(await finish(owner, id, { ...finishAs('success'), inbox: 'p1' })).toEqual({ type: 'fenced' });
    expect(await noticesOf()).toEqual([]);
  });

  test('carries no Result that is long: that is read from the session', async () => {
    await keepInbox(redis, keys.namespace, 'p1');
    const { owner, id } = await startOne();
    const result = resultOf('success', { stdout: 'x'.repeat(5_000) });
    await finish(owner, id, { result, epoch: 1, takeNext: false, inbox: 'p1' });
    expect((await noticesOf())[0]?.slice(8)).toEqual(['r', '']);
  });

  test('makes no inbox for a producer that is gone, and one that is broken keeps nothing from ending', async () => {
    const gone = await startOne();
    expect(await finish(gone.owner, gone.id, { ...finishAs('success'), inbox: 'p1' })).toMatchObject({
      type: 'finished',
    });
    expect(await redis.exists(inbox())).toBe(0);

    keys = newKeys();
    await redis.set(inbox(), 'no stream');
    const broken = await startOne();
    const finished = await finish(broken.owner, broken.id, { ...finishAs('success'), inbox: 'p1' });
    expect(finished).toMatchObject({ type: 'finished' });
  });
});
