import { describe, expect, test } from 'vitest';
import { parseInterval } from './top.ts';

describe('the interval of `top`', () => {
  test.each([
    ['0', 250],
    ['10s', 10_000],
    ['30d', 86_400_000],
  ])('is bounded: %s counts as %d ms', (text, ms) => {
    expect(parseInterval(text)).toBe(ms);
  });
});
