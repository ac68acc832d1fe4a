import { BATCH_LEASE_MS } from '@shellfleet/mailbox';
import { beforeEach, describe, expect, test } from 'vitest';
import { HeldLease } from './held-lease.ts';

let times: { wall: number; monotonic: number };
let lease: HeldLease;
const pass = (ms: number, clocks: ('wall' | 'monotonic')[] = ['wall', 'monotonic']) => {
  for (const clock of clocks) times[clock] += ms;
};
beforeEach(() => {
  times = { wall: 1_000_000, monotonic: 0 };
  lease = new HeldLease(() => ({ ...times }));
});

describe('the lease of a batch', () => {
  test('is held from when its renewal was sent, until shortly before its end', async () => {
    pass(BATCH_LEASE_MS / 2);
    await lease.renew(async () => pass(1_000));
    pass(0.9 * BATCH_LEASE_MS - 1_001);
    expect(lease.held).toBe(true);
    pass(1);
    expect(lease.held).toBe(false);
  });

  test.each(['wall', 'monotonic'] as const)('is lost when only the %s clock has gone on', (clock) => {
    pass(BATCH_LEASE_MS, [clock]);
    expect(lease.held).toBe(false);
  });

  test('stays lost after a renewal whose reply came too late', async () => {
    await lease.renew(async () => pass(BATCH_LEASE_MS));
    expect(lease.held).toBe(false);
    await lease.renew(async () => {});
    expect(lease.held).toBe(false);
  });
});
