import { describe, expect, test } from 'vitest';
import { formatQuantity, parseQuantity } from './quantity.ts';

describe('quantities', () => {
  test.each([
    ['500m', 0.5, '500m'],
    ['0.5', 0.5, '500m'],
    ['1', 1, '1'],
    ['1500m', 1.5, '1500m'],
    ['1000', 1_000, '1k'],
    ['1e3', 1_000, '1k'],
    ['64Mi', 67_108_864, '64Mi'],
    ['1536Mi', 1_610_612_736, '1536Mi'],
    ['1024Ki', 1_048_576, '1Mi'],
    ['0', 0, '0'],
  ])('reads %s and writes its canonical form', (text, value, canonical) => {
    const quantity = parseQuantity(text);
    expect(quantity?.value).toBe(value);
    expect(quantity && formatQuantity(quantity)).toBe(canonical);
  });

  test.each(['', 'a', '1X', '1 Gi', '--1'])('are not read from %j', (text) => {
    expect(parseQuantity(text)).toBeUndefined();
  });
});
