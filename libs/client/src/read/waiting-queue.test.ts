import { describe, expect, test } from 'vitest';
import { estimateWait } from './waiting-queue.ts';

const host = (own = {}) => ({ slots: 4, free: 0, draining: false, heldMs: 60_000, ...own });

describe('estimated wait in the queue', () => {
  test.each([
    ['is the time that a slot is held, divided by the slots of the host', 1, [host()], 15_000],
    ['is longer for a later position', 8, [host()], 120_000],
    ['decreases with the slots of further hosts', 8, [host(), host({ slots: 8, heldMs: 120_000 })], 60_000],
    ['is zero when a slot is free', 2, [host({ free: 2 })], 0],
    ['counts free slots for earlier positions first', 3, [host({ free: 2 })], 15_000],
    ['ignores the slots of a host that drains', 1, [host({ draining: true, free: 3 }), host()], 15_000],
    ['is undefined until a session has ended on some host', 1, [host({ heldMs: undefined })], undefined],
    ['is undefined without a host', 1, [], undefined],
  ])('%s', (_what, position, hosts, waitMs) => {
    expect(estimateWait(position, hosts)).toBe(waitMs);
  });
});
