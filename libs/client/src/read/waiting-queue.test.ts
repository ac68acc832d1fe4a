import { expect, test } from 'vitest';
import { estimateWait } from './waiting-queue.ts';

const host = (own = {}) => ({ slots: 4, free: 0, draining: false, heldMs: 60_000, ...own });

test.each([
  ['one of four slots comes free every fourth of the time that one is held', 1, [host()], 15_000],
  ['a later position waits longer', 8, [host()], 120_000],
  ['hosts share the queue', 8, [host(), host({ slots: 8, heldMs: 120_000 })], 60_000],
  ['with a free slot nobody waits', 2, [host({ free: 2 })], 0],
  ['free slots are given to those in front', 3, [host({ free: 2 })], 15_000],
  ['a host that drains gives no slot', 1, [host({ draining: true, free: 3 }), host()], 15_000],
  ['nothing is said before a session has ended anywhere', 1, [host({ heldMs: undefined })], undefined],
  ['nor without a host', 1, [], undefined],
])('%s', (_what, position, hosts, waitMs) => {
  expect(estimateWait(position, hosts)).toBe(waitMs);
});
