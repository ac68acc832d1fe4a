import type { Socket } from 'node:net';
import { connectRedis } from '@shellfleet/redis';
import { expect, test, vi } from 'vitest';
import { connectTestRedis } from '../support/mailbox-session.ts';

// batch-writes.ts wraps the private field `stream` of ioredis: without it every command is a write of its own, and nothing else fails.

test('ioredis has its socket in `stream`, and the commands of one turn of the event loop leave it in one write', async () => {
  await using server = await connectTestRedis();
  const { redis, clockProblem } = await connectRedis(server.url, 'producer', 'batch-writes');
  await clockProblem; // its call shares the first write
  const { stream } = redis as unknown as { stream: Socket };
  const cork = vi.spyOn(stream, 'cork');
  await Promise.all([redis.ping(), redis.ping(), redis.ping()]);
  expect(cork).toHaveBeenCalledOnce();
  redis.disconnect();
});
