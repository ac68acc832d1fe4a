import { fleetKeys, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { noteInIndex } from './note-in-index.ts';

const HOUR_MS = 3_600_000;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1) });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the note of a used session', () => {
  test('is repeated after 20 s, and at once when the clock was set', () => {
    const redis = { zadd: vi.fn(async () => 1), lpush: vi.fn(async () => 1) };
    const session = { keys: sessionKeys('n', 't', 's'), indexedAt: 0 };
    const notesAfter = (ms: number) => {
      vi.setSystemTime(Date.now() + ms);
      noteInIndex({ redis: redis as unknown as Redis, fleet: fleetKeys('n') }, session);
      return redis.zadd.mock.calls.length;
    };
    expect([0, 19_000, 1_000, 1_000, -HOUR_MS, 1_000, HOUR_MS].map(notesAfter)).toEqual([1, 1, 2, 2, 3, 3, 4]);
  });
});
