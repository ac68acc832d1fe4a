import { describe, expect, test } from 'vitest';
import { estimateWait } from './waiting-queue.ts';

const host = (own = {}) => ({ slots: 4, free: 0, draining: false, heldMs: 60_000, ...own });
const CLOSED = { reason: 'memory is short', refusal: null, opening: 0, freeMemoryBytes: 0 };
const gate = { ...CLOSED, freeDiskBytes: null, memoryPressure: null, ioPressure: null };

describe('estimated wait in the queue', () => {
  test.each([
    ['is the time that a slot is held, divided by the slots of the host', 1, [host()], 15_000],
    ['is longer for a later position', 8, [host()], 120_000],
    ['decreases with the slots of further hosts', 8, [host(), host({ slots: 8, heldMs: 120_000 })], 60_000],
    ['is zero when a slot is free', 2, [host({ free: 2 })], 0],
    ['counts free slots for earlier positions first', 3, [host({ free: 2 })], 15_000],
    ['does not count free slots of a host that has no room', 1, [host({ free: 2, gate })], 15_000],
    ['does not count the last eighth of the slots', 1, [host({ slots: 16, free: 2 })], 3_750],
    ['ignores the slots of a host that drains', 1, [host({ draining: true, free: 3 }), host()], 15_000],
    ['is undefined until a session has ended on some host', 1, [host({ heldMs: undefined })], undefined],
    ['is undefined without a host', 1, [], undefined],
  ])('%s', (_what, position, hosts, waitMs) => {
    expect(estimateWait({ position, overQuota: 0, quota: undefined }, hosts)).toBe(waitMs);
  });

  test.each([
    ['is the time until enough sessions of its tenant have ended', 1, 3, [host({ free: 2 })], 90_000],
    ['is the longer one of the waits for a slot and for the quota', 8, 1, [host()], 120_000],
  ])('for a session above the quota, %s', (_what, position, overQuota, hosts, waitMs) => {
    expect(estimateWait({ position, overQuota, quota: 2 }, hosts)).toBe(waitMs);
  });
});
