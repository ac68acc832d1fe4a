import { setTimeout as delay } from 'node:timers/promises';
import { connectRedis, REDIS_DEADLINE_MS, toQueueError } from '@shellfleet/redis';
import { describe, expect, test } from 'vitest';
import { startOwnRedis } from '../support/own-redis.ts';
import { until, untilEvent } from '../support/until.ts';

const failed = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (error: Error) => error.message,
  );

describe('a connection to Redis after an outage', () => {
  test('fails a call of a host immediately during the outage, and never sends it later', async () => {
    await using own = await startOwnRedis();
    const { redis, clockProblem } = await connectRedis(own.url, 'host', 'test');
    await clockProblem; // from here on no call is under way
    const broken = untilEvent(redis, 'close');
    await own.kill();
    await broken;
    const from = performance.now();
    expect(await failed(redis.set('late', '1'))).not.toBe('answered');
    expect(performance.now() - from).toBeLessThan(REDIS_DEADLINE_MS);
    const ready = untilEvent(redis, 'ready');
    await own.start();
    await ready;
    expect(await redis.get('late')).toBeNull();
    redis.disconnect();
  });

  test('ends after a call without a reply, with all calls behind it', async () => {
    await using own = await startOwnRedis();
    const { redis } = await connectRedis(own.url, 'host', 'test');
    own.freeze();
    const closed = untilEvent(redis, 'close');
    const first = failed(redis.ping());
    const large = Array.from({ length: 20 }, () => failed(redis.set('large', 'x'.repeat(1 << 20))));
    expect(await first).toBe('Command timed out');
    await closed;
    expect(await Promise.all(large)).not.toContain('answered');
    const { commandQueue, offlineQueue } = redis as unknown as Record<
      'commandQueue' | 'offlineQueue',
      { length: number }
    >;
    expect([commandQueue.length, offlineQueue.length]).toEqual([0, 0]);
    own.thaw();
    expect(
      await until(
        () => failed(redis.ping()),
        (answer) => answer === 'answered',
      ),
    ).toBe('answered');
    redis.disconnect();
  });

  test('does not send calls of a producer that were reported as failed', async () => {
    await using own = await startOwnRedis();
    const { redis } = await connectRedis(own.url, 'producer', 'test');
    own.freeze();
    await failed(redis.ping());
    const late = Array.from({ length: 10 }, (_, index) => failed(redis.set(`late-${index}`, '1')));
    expect(await Promise.all(late)).not.toContain('answered');
    const ready = untilEvent(redis, 'ready');
    own.thaw();
    await ready;
    await redis.ping();
    expect(await redis.keys('late-*')).toEqual([]);
    redis.disconnect();
  });

  test('runs `recover` before any other call until it succeeds', async () => {
    await using own = await startOwnRedis();
    const { redis, recoverFirst } = await connectRedis(own.url, 'host', 'test');
    let attempts = 0;
    recoverFirst(async (direct) => {
      attempts += 1;
      await direct.rpush('order', `recovering ${attempts}`);
      await delay(100);
      if (attempts === 1) throw new Error('not yet');
      await direct.multi().rpush('order', 'recovered').exec();
    });
    await redis.rpush('order', 'before');
    let stop = false;
    const others = (async () => {
      while (!stop) await failed(redis.multi().rpush('order', 'other').exec()).then(() => delay(1));
    })();
    await own.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until(
      () => own.redis.lrange('order', 0, -1),
      (order) => order.lastIndexOf('other') > order.indexOf('recovered') && order.includes('recovered'),
    );
    stop = true;
    await others;
    const order = await own.redis.lrange('order', 0, -1);
    const recovery = order.slice(order.indexOf('recovering 1'));
    expect(recovery.slice(0, 4)).toEqual(['recovering 1', 'recovering 2', 'recovered', 'other']);
    redis.disconnect();
  });

  test('returns errors without the arguments of the call, such as a password', async () => {
    await using own = await startOwnRedis();
    const { redis } = await connectRedis(own.url, 'host', 'test');
    const error = await redis.call('AUTH', 'user', 'hunter2').catch((cause: unknown) => cause);
    expect(error).toMatchObject({ message: expect.stringContaining('WRONGPASS') });
    expect(Object.keys(error as object)).toEqual([]);
    expect(JSON.stringify(toQueueError(error))).not.toContain('hunter2');
    redis.disconnect();
  });
});
