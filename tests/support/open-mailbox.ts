import { type Owner, submit, take } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { connectTestRedis, newKeys, newSubmission, openSession, type TestRedis } from './mailbox-session.ts';

export let redis: Redis;
export let keys: SessionKeys;
export let generation: string;

/** Gives each test of the file an open session of its own, on one connection to the run's Redis. */
export function useMailbox(): void {
  let connected: TestRedis;
  beforeAll(async () => {
    connected = await connectTestRedis();
    redis = connected.redis;
  });
  afterAll(() => connected[Symbol.asyncDispose]());
  beforeEach(async () => {
    keys = newKeys();
    generation = await openSession(redis, keys);
  });
}

/** Submits one entry and starts it. */
export async function startOne(owner: Owner, rest = {}) {
  await submit(redis, keys, newSubmission(generation, rest));
  const taken = await take(owner);
  if (taken.type !== 'started') throw new Error(`nothing was started: ${taken.type}`);
  return taken.entry;
}
