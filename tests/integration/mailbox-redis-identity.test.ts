import { connectRedis, readRedisIdentity } from '@shellfleet/redis';
import { describe, expect, test } from 'vitest';
import { startOwnRedis } from '../support/own-redis.ts';
import { until, untilEvent } from '../support/until.ts';

describe('the identity of a Redis', () => {
  test('shows after a reconnection whether the server is the same', async () => {
    await using own = await startOwnRedis();
    const { redis, history } = await connectRedis(own.url, 'host', 'test');
    const first = await readRedisIdentity(redis);
    expect(history).toEqual({ identity: first, changes: 0, changedAt: undefined });

    const same = untilEvent(redis, 'ready').then(() => ({ ...history }));
    await own.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    expect(await same).toEqual({ identity: first, changes: 0, changedAt: undefined });

    const restartedAt = Date.now();
    const other = untilEvent(redis, 'ready').then(() => ({ ...history }));
    await own.restart();
    const restarted = await other;
    expect(restarted).toEqual({ identity: await readRedisIdentity(redis), changes: 1, changedAt: expect.any(Number) });
    expect(restarted.identity).not.toEqual(first);
    expect(restarted.changedAt).toBeGreaterThanOrEqual(restartedAt);
    redis.disconnect();
  });

  test('differs between a primary and its promoted replica', async () => {
    await using primary = await startOwnRedis('--repl-diskless-sync-delay', '0');
    await using replica = await startOwnRedis();
    const [host = '', port = ''] = primary.url.replace('redis://', '').split(':');
    await replica.redis.replicaof(host, Number(port));
    await until(
      () => replica.redis.info('replication'),
      (text) => text.includes('master_link_status:up'),
    );
    const before = await readRedisIdentity(primary.redis);
    expect((await readRedisIdentity(replica.redis))?.replicationId).toBe(before?.replicationId);
    await replica.redis.replicaof('NO', 'ONE');
    const after = await readRedisIdentity(replica.redis);
    expect(after?.runId).not.toBe(before?.runId);
    expect(after?.replicationId).not.toBe(before?.replicationId);
  });
});
