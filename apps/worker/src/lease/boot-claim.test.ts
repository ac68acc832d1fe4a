import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { type BootClaim, claimHostId, holdsHostId, renewHostId } from './boot-claim.ts';

/** Fakes the two commands that a claim uses. Each write is recorded with its expiry. */
function fakeRedis(stored: string | null) {
  const writes: unknown[][] = [];
  const redis = {
    get: async () => stored,
    set: async (...write: unknown[]) => void writes.push(write),
  };
  return { redis: redis as unknown as Redis, writes };
}

const claim: BootClaim = { hostId: 'h1', machine: 'm1', boot: 'b2', ttlMs: 5_000 };
const WRITE = [['ns:{x0}:host:h1:boot', 'm1 b2', 'PX', 5_000]];

describe('the claim of a host id', () => {
  test.each([
    ['nobody has it', null],
    ['an earlier process of this machine had it', 'm1 b1'],
  ])('succeeds when %s', async (_when, stored) => {
    const { redis, writes } = fakeRedis(stored);
    await claimHostId(redis, 'ns', claim);
    expect(writes).toEqual(WRITE);
  });

  test('fails, and changes nothing, while another machine holds the id', async () => {
    const { redis, writes } = fakeRedis('m2 b1');
    await expect(claimHostId(redis, 'ns', claim)).rejects.toMatchObject({
      code: 'HOST_ID_TAKEN',
      context: { hostId: 'h1' },
    });
    expect(writes).toEqual([]);
  });

  test.each([
    ['its own claim', 'm1 b2', true],
    ['no claim, because it has expired', null, true],
    ['the claim of an earlier process of this machine, from an older state of Redis', 'm1 b1', true],
    ['the claim of a later process of this machine', 'm1 b3', false],
    ['the claim of another machine', 'm2 b2', false],
  ])('is held by this process while Redis has %s (%s): %s', async (_title, stored, held) => {
    const { redis, writes } = fakeRedis(stored);
    expect(await holdsHostId(redis, 'ns', claim)).toBe(held);
    expect(writes).toEqual([]);
  });

  test('is renewed', async () => {
    const { redis, writes } = fakeRedis('m1 b2');
    await renewHostId(redis, 'ns', claim);
    expect(writes).toEqual(WRITE);
  });
});
