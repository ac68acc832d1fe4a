import { describe, expect, test } from 'vitest';
import { RecentRate } from './recent-rate.ts';

describe('a recent rate', () => {
  test('is that of the last ten whole seconds', () => {
    const rate = new RecentRate();
    for (let ms = 0; ms < 5_000; ms += 100) rate.record(ms);
    expect([4_900, 5_000, 10_500, 13_000, 14_999, 90_000].map((ms) => rate.perSecond(ms))).toEqual([4, 5, 5, 2, 1, 0]);
    rate.record(90_500);
    expect([90_999, 91_000].map((ms) => rate.perSecond(ms))).toEqual([0, 0.1]);
  });
});
