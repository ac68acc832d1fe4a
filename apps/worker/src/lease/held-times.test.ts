import { describe, expect, test } from 'vitest';
import { createHeldTimes } from './held-times.ts';

describe('the times for which sessions held slots', () => {
  test('have the median of the last 32, in whole milliseconds', () => {
    const times = createHeldTimes();
    expect(times.median()).toBe(undefined);
    times.record(1_000.4);
    expect(times.median()).toBe(1_000);
    times.record(100);
    times.record(5_000);
    expect(times.median()).toBe(1_000);
    for (let ms = 1; ms <= 31; ms += 1) times.record(ms);
    expect(times.median()).toBe(17);
  });
});
