import { describe, expect, test } from 'vitest';
import { prefer } from './parts.ts';

describe('the header Prefer', () => {
  test.each<[string | undefined, number | undefined]>([
    ['wait=5', 5_000],
    ['respond-async, wait=5', 5_000],
    ['Wait=5', 5_000],
    ['wait="5"', 5_000],
    ['wait = 5; foo=bar', 5_000],
    ['wait=999999', 300_000],
    ['wait=-5', undefined],
    ['wait="5', undefined],
    ['await=5', undefined],
    [undefined, undefined],
  ])('%j waits for %j ms', (header, expected) => {
    expect(prefer.parse(header)).toBe(expected);
  });
});
