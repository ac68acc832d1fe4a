import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { DurabilityOfRedis, waitUntilOnDisk } from './durability.ts';

interface Settings {
  version: string;
  aof: boolean;
  appendfsync: string;
  /** Copies on disk that WAITAOF reports. */
  onDisk: number;
}

function fakeRedis(settings: Settings) {
  const calls: unknown[][] = [];
  const redis = Object.assign(new EventEmitter(), {
    info: async () => `redis_version:${settings.version}\r\naof_enabled:${settings.aof ? 1 : 0}\r\n`,
    config: async () => ['appendfsync', settings.appendfsync],
    call: async (...call: unknown[]) => {
      calls.push(call);
      return [settings.onDisk, 0];
    },
  });
  return { redis: redis as unknown as Redis, calls };
}

const always: Settings = { version: '7.0.15', aof: true, appendfsync: 'always', onDisk: 1 };

describe('durability of Redis', () => {
  test.each([
    ['an append-only file that is synced always', always, 'always'],
    [
      'a file that is synced every second, in Redis 7.2',
      { ...always, version: '7.2.0', appendfsync: 'everysec' },
      'wait',
    ],
    ['a file that is synced every second, in Redis 7.0', { ...always, appendfsync: 'everysec' }, 'none'],
    ['no append-only file', { ...always, version: '8.0.0', aof: false }, 'none'],
  ])('has the right mode for %s', async (_what, settings, mode) => {
    const durability = new DurabilityOfRedis(fakeRedis(settings).redis, { changes: 0 });
    await durability.read();
    expect(durability.mode).toBe(mode);
  });

  test.each<[string, Partial<Settings>, string | undefined, number]>([
    ['also syncs always', {}, undefined, 0],
    ['confirms by WAITAOF', { version: '7.2.0', appendfsync: 'everysec' }, undefined, 1],
    ['does not write in time', { version: '7.2.0', appendfsync: 'everysec', onDisk: 0 }, 'QUEUE_UNAVAILABLE', 1],
    ['cannot confirm', { aof: false }, 'DURABLE_UNSUPPORTED', 0],
  ])(
    'applies the settings of a replacement to earlier writes: the new Redis %s',
    async (_what, change, code, waits) => {
      const settings = { ...always };
      const history = { changes: 0 };
      const { redis, calls } = fakeRedis(settings);
      const durability = new DurabilityOfRedis(redis, history);
      await durability.read();
      Object.assign(settings, change);
      await durability.confirm('s.X', 0);
      history.changes = 1;
      // Two reconnections read the mode again before the reply arrives.
      await durability.refresh();
      await durability.refresh();
      const confirmed = durability.confirm('s.X', 0).then(
        () => undefined,
        (error) => error.code,
      );
      expect(await confirmed).toBe(code);
      expect(calls).toEqual(Array(waits).fill(['WAITAOF', '1', '0', '1500']));
    },
  );

  test('is not confirmed by a reply that came over another connection', async () => {
    const { redis } = fakeRedis({ ...always, version: '7.2.0', appendfsync: 'everysec' });
    const confirmed = waitUntilOnDisk(redis, 's.X');
    redis.emit('close');
    await expect(confirmed).rejects.toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      message: expect.stringContaining('s.X was accepted, but the connection broke'),
    });
    expect(redis.listenerCount('close')).toBe(0);
  });
});
