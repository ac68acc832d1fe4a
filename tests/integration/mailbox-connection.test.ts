import type { Socket } from 'node:net';
import { append, cancel, close, finish, release, submit, sweep, take } from '@shellfleet/mailbox';
import { connectRedis, describeRedis, openRedis, parseRedisUrl, REDIS_DEADLINE_MS } from '@shellfleet/redis';
import { describe, expect, test } from 'vitest';
import { startFakeRedis } from '../support/fake-redis.ts';
import { idsOf, outcomesOf, readEvents } from '../support/invariants.ts';
import {
  finishAs,
  newKeys,
  newSubmission,
  openSession,
  own,
  pieceAfter,
  submitSome,
} from '../support/mailbox-session.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { untilEvent } from '../support/until.ts';

const refusal = (url: string) =>
  connectRedis(url, 'producer', 'test').then(
    ({ redis }) => redis.disconnect(),
    (error: unknown) => error,
  );

describe('the connection to Redis', () => {
  test.each(['allkeys-lru', 'volatile-ttl', 'allkeys-random'])(
    'refuses a Redis that may drop accepted commands: %s',
    async (policy) => {
      await using server = await startOwnRedis();
      await server.redis.config('SET', 'maxmemory-policy', policy);
      expect(await refusal(server.url)).toMatchObject({
        code: 'REDIS_UNSUITABLE',
        message: expect.stringContaining(`maxmemory-policy ${policy}`),
        context: { setting: 'maxmemory-policy' },
      });
      await server.redis.config('SET', 'maxmemory-policy', 'noeviction');
      expect(await refusal(server.url)).toBeUndefined();
    },
  );

  test('refuses a replica', async () => {
    await using server = await startOwnRedis();
    await server.redis.replicaof('127.0.0.1', 1);
    expect(await refusal(server.url)).toMatchObject({ code: 'REDIS_UNSUITABLE', context: { setting: 'replicaof' } });
  });

  test.each([
    ['5.0.14', false],
    ['6.0.20', false],
    ['6.2.0', true],
    ['6.10.1', true],
    ['7.2.4', true],
    ['8.0.0', true],
    ['255.255.255', true],
  ])('accepts version %s of Redis: %s', async (version, isTaken) => {
    await using server = await startFakeRedis({
      redis_version: version,
      role: 'master',
      maxmemory_policy: 'noeviction',
    });
    const refused = await refusal(server.url);
    if (isTaken) expect(refused).toBeUndefined();
    else
      expect(refused).toMatchObject({
        code: 'REDIS_UNSUITABLE',
        message: expect.stringContaining(`is version ${version}; Shellfleet needs 6.2`),
        context: { setting: 'redis_version', version },
      });
  });

  test.each(['', 'localhost', 'http://localhost:6379', 'redis://host:notaport', 'unix:/tmp/redis.sock', 'redis//x'])(
    'refuses a malformed URL without repeating it: %j',
    async (url) => {
      expect(() => describeRedis(url)).toThrow('SHELLFLEET_REDIS_URL');
      expect(await refusal(url)).toMatchObject({ code: 'REDIS_UNSUITABLE' });
    },
  );

  test('is described without the password', () => {
    expect(describeRedis('rediss://user:secret@example.org:7000/3')).toBe('example.org:7000');
    expect(describeRedis('redis://')).toBe('localhost:6379');
  });

  test('does not time out while this process is busy', async () => {
    await using own = await startOwnRedis();
    const { redis } = await connectRedis(own.url, 'producer', 'busy');
    const replies = [redis.ping(), redis.ping()];
    const busyUntil = performance.now() + REDIS_DEADLINE_MS + 500;
    while (performance.now() < busyUntil);
    expect(await Promise.all(replies)).toEqual(['PONG', 'PONG']);
    redis.disconnect();
  });

  test('fails within the deadline if no Redis replies', async () => {
    const startedAt = performance.now();
    const refused = await refusal('redis://:secret@127.0.0.1:1');
    expect(refused).toMatchObject({ code: 'QUEUE_UNAVAILABLE', retryable: true, context: { place: '127.0.0.1:1' } });
    expect(String(refused)).toContain('ECONNREFUSED');
    expect(JSON.stringify(refused) + String(refused)).not.toContain('secret');
    expect(performance.now() - startedAt).toBeLessThan(2_500);
  });

  test('reports that a full Redis accepts nothing new, while running entries can end', async () => {
    await using server = await startOwnRedis();
    const { redis } = await connectRedis(server.url, 'producer', 'test');
    const keys = newKeys();
    const generation = await openSession(redis, keys);
    const [running = '', ...waiting] = await submitSome(redis, keys, generation, 3);
    const owner = await own(redis, keys);
    await take(owner);
    await redis.config('SET', 'maxmemory', '1');
    const full = { code: 'QUEUE_UNAVAILABLE', retryable: true, message: expect.stringContaining('Redis is full') };
    await expect(submit(redis, keys, newSubmission(generation))).rejects.toMatchObject(full);
    await expect(
      append(owner, running, [pieceAfter({ offsets: { stdout: 0, stderr: 0 }, seq: 0 }, 'x')]),
    ).rejects.toMatchObject(full);
    expect((await finish(owner, running, finishAs('success'))).type).toBe('finished');
    expect((await cancel(redis, keys, waiting[0] ?? '', 'full')).type).toBe('ended');
    expect((await sweep(redis, keys)).hasWork).toBe(true);
    expect((await close(redis, keys, generation, false)).type).toBe('closing');
    expect((await release(owner, 'queued')).type).toBe('released');
    const outcomes = outcomesOf(await readEvents(redis, keys));
    expect([...outcomes.values()].sort()).toEqual(['cancellation', 'cancellation', 'success']);
    redis.disconnect();
  });

  // CALL-5
  test('leaves no unhandled rejection if it closes while a subscription is restored', async () => {
    await using server = await startOwnRedis();
    const redis = openRedis(parseRedisUrl(server.url), 'subscriber', 'test');
    await redis.subscribe('a');
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    const ended = untilEvent(redis, 'end');
    redis.once('ready', () => {
      redis.disconnect();
      (redis as unknown as { stream: Socket }).stream.destroy();
    });
    await server.redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await ended;
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  test('tells its caller of each sending, also of that after a missing script', async () => {
    await using server = await startOwnRedis();
    const { redis } = await connectRedis(server.url, 'producer', 'test');
    const keys = newKeys();
    const generation = await openSession(redis, keys);
    await redis.script('FLUSH');
    /** Number of accepted entries after each sending, as the next call of the connection finds it. */
    const accepted: Promise<number>[] = [];
    const onSent = () => accepted.push(redis.llen(keys.queue));
    await submit(redis, keys, newSubmission(generation), onSent);
    await submit(redis, keys, newSubmission(generation), onSent);
    expect(await Promise.all(accepted)).toEqual([0, 1, 2]);
    redis.disconnect();
  });

  test('keeps entries in call order after a restarted Redis has lost the scripts', async () => {
    await using server = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always');
    const { redis } = await connectRedis(server.url, 'subscriber', 'test');
    const keys = newKeys();
    const generation = await openSession(redis, keys);
    const called: string[] = [];
    const calls: Promise<unknown>[] = [];
    const call = () => {
      const submission = newSubmission(generation);
      called.push(submission.entryId);
      calls.push(submit(redis, keys, submission));
    };
    for (let index = 0; index < 10; index += 1) call();
    await server.restart();
    // The calls are not awaited. Some are sent before the first refusal for a missing script, some while the scripts
    // are loaded, some afterwards.
    for (let index = 0; index < 200; index += 1) {
      call();
      if (index % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(calls);
    expect(idsOf(await readEvents(redis, keys), 'command.accepted')).toEqual(called);
    await redis.script('FLUSH');
    for (let index = 0; index < 20; index += 1) call();
    await Promise.all(calls);
    expect(idsOf(await readEvents(redis, keys), 'command.accepted')).toEqual(called);
    redis.disconnect();
  });
});
