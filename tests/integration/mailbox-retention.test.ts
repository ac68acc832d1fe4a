import { finish, open, release, submit, take } from '@shellfleet/mailbox';
import { fleetKeys, idempotencyKey, LIMITS, recordKey, replyKey, specKey } from '@shellfleet/protocol';
import { readRetention, recordRetention, retentionOf } from '@shellfleet/redis';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { connectTestRedis, finishAs, newKeys, newSubmission, own } from '../support/mailbox-session.ts';

describe('the retention of a fleet', () => {
  test('is 24 hours until a worker records another time for all processes', async () => {
    await using server = await connectTestRedis();
    const { redis } = server;
    const keys = newKeys();
    expect(await readRetention(redis, keys.namespace)).toBe(LIMITS.defaultRetentionMs);
    const other = new Redis(server.url);
    await recordRetention(other, fleetKeys(keys.namespace), 5_000);
    other.disconnect();
    expect(retentionOf(redis, keys.namespace)).toBe(LIMITS.defaultRetentionMs);
    expect(await readRetention(redis, keys.namespace)).toBe(5_000);
    expect(retentionOf(redis, keys.namespace)).toBe(5_000);
    expect(retentionOf(redis, 'another')).toBe(LIMITS.defaultRetentionMs);
  });

  test('limits the lifetime of all keys of a closed session', async () => {
    await using server = await connectTestRedis();
    const { redis } = server;
    const keys = newKeys();
    await recordRetention(redis, fleetKeys(keys.namespace), 5_000);
    const opened = await open(redis, keys, () => 'sealed spec', 'digest');
    if (opened.type !== 'created') throw new Error(opened.type);
    const submission = newSubmission(opened.generation, { idempotencyKey: 'k' });
    await submit(redis, keys, submission);
    const owner = await own(redis, keys);
    await take(owner);
    await finish(owner, submission.entryId, { ...finishAs('success'), answer: 'sealed answer' });
    await redis.hset(keys.state, 'phase', 'closing');
    await release(owner, 'queued');
    const left = await redis.keys(`${keys.prefix}*`);
    const expected = [
      ...[keys.state, keys.stream, specKey(keys), recordKey(keys, submission.entryId)],
      ...[replyKey(keys, submission.entryId), idempotencyKey(keys, 'k')],
    ];
    expect(left.sort()).toEqual(expected.sort());
    const times = await Promise.all(left.map((key) => redis.pttl(key)));
    expect(times.filter((ms) => ms > 5_000 || ms === -1)).toEqual([]);
  });
});
