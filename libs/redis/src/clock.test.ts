import { describe, expect, test } from 'vitest';
import { describeClock } from './clock.ts';

describe('the warning about clocks', () => {
  test.each([
    [59_999, undefined],
    [-59_999, undefined],
    [3_600_000, /^The clock of this machine is 60 min ahead of that of Redis at r:1, .* Set both by NTP\.$/],
    [-90_000, /is 2 min behind that of Redis at r:1/],
  ])('for a clock that is %i ms ahead is: %s', (aheadMs, words) => {
    const said = describeClock(aheadMs, 'r:1');
    if (words === undefined) expect(said).toBeUndefined();
    else expect(said).toMatch(words);
  });
});
