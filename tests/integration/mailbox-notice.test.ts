import { finish, parseInboxMessage, submit, take } from '@shellfleet/mailbox';
import { inboxChannel, type SessionKeys } from '@shellfleet/protocol';
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
let subscriber: Redis;
let messages: string[] = [];

beforeAll(async () => {
  connected = await connectTestRedis();
  redis = connected.redis;
  subscriber = redis.duplicate();
  subscriber.on('message', (_channel: string, message: string) => messages.push(message));
});
afterAll(() => {
  subscriber.disconnect();
  return connected[Symbol.asyncDispose]();
});
beforeEach(async () => {
  keys = newKeys();
  messages = [];
  await subscriber.subscribe(inboxChannel(keys.namespace, keys.tenant, 'p1'));
});

/** Returns the notices so far. Sends a last message itself, and waits until it arrives after all notices. */
async function readNotices() {
  await redis.publish(inboxChannel(keys.namespace, keys.tenant, 'p1'), 'a last ');
  await expect.poll(() => messages.at(-1)).toBe('a last ');
  return messages.slice(0, -1).map(parseInboxMessage);
}

async function startOne() {
  const generation = await openSession(redis, keys);
  const owner = await own(redis, keys);
  await submit(redis, keys, newSubmission(generation));
  const taken = await take(owner);
  if (taken.type !== 'started') throw new Error(`nothing was started: ${taken.type}`);
  return { owner, id: taken.entry.id };
}

describe('the notice of an end', () => {
  test('arrives in the inbox once, even if the call arrives twice', async () => {
    const { owner, id } = await startOne();
    const end = { ...finishAs('success'), inbox: 'p1' };
    const finished = await finish(owner, id, end);
    await finish(owner, id, end);
    if (finished.type !== 'finished') throw new Error(finished.type);
    const [notice, ...more] = await readNotices();
    if (notice?.type !== 'notice') throw new Error('there is no notice');
    const { result, ...rest } = notice;
    expect(rest).toEqual({ type: 'notice', tenant: 't1', session: 's1', entryId: id, event: finished.event });
    expect(JSON.parse(result)).toMatchObject({ outcome: 'success' });
    expect(more).toEqual([]);
  });

  // Invariant 1
  test('is not sent for a host that was fenced off', async () => {
    const { owner, id } = await startOne();
    await own(redis, keys, 'h2');
    expect(await finish(owner, id, { ...finishAs('success'), inbox: 'p1' })).toEqual({ type: 'fenced' });
    expect(await readNotices()).toEqual([]);
  });

  test('omits a long Result, which is read from the session', async () => {
    const { owner, id } = await startOne();
    // The text has more bytes than characters.
    const result = resultOf('success', { stdout: 'é'.repeat(2_000) });
    await finish(owner, id, { result, epoch: 1, takeNext: false, inbox: 'p1' });
    expect(await readNotices()).toMatchObject([{ entryId: id, result: '' }]);
  });

  test('leaves nothing in Redis for a producer that is gone', async () => {
    const { owner, id } = await startOne();
    const end = { ...finishAs('success'), inbox: 'p2' };
    expect(await finish(owner, id, end)).toMatchObject({ type: 'finished' });
    expect(await redis.keys(`${keys.namespace}:inbox:*`)).toEqual([]);
  });

  test("is omitted if the host's Redis user may not publish it", async () => {
    await redis.acl('SETUSER', 'mute', 'on', '>hush', '~*', '+@all', '&*:feed:*');
    const mute = redis.duplicate({ username: 'mute', password: 'hush' });
    try {
      const { owner, id } = await startOne();
      const end = { ...finishAs('success'), inbox: 'p1' };
      expect(await finish({ ...owner, redis: mute }, id, end)).toMatchObject({ type: 'finished' });
      expect(await readNotices()).toEqual([]);
    } finally {
      mute.disconnect();
      await redis.acl('DELUSER', 'mute');
    }
  });
});
