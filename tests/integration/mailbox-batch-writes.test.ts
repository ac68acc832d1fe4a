import type { Socket } from 'node:net';
import { connectRedis } from '@shellfleet/redis';
import { describe, expect, test, vi } from 'vitest';
import { connectTestRedis } from '../support/mailbox-session.ts';

// `batchWrites` (changes.ts) wraps the private field `stream` of ioredis. Without that field every command is a
// separate write, and nothing else fails.

describe('the connection of ioredis', () => {
  test('has its socket in `stream`, and writes the commands of one turn together', async () => {
    await using server = await connectTestRedis();
    const { redis, clockProblem } = await connectRedis(server.url, 'producer', 'batch-writes');
    await clockProblem; // the call that reads the clock would share the first write
    const { stream } = redis as unknown as { stream: Socket };
    const cork = vi.spyOn(stream, 'cork');
    await Promise.all([redis.ping(), redis.ping(), redis.ping()]);
    expect(cork).toHaveBeenCalledOnce();
    redis.disconnect();
  });
});
