import { describe, expect, test } from 'vitest';
import { decodeUtf8 } from './decode.ts';
import { firstWithin, jsonSize, lastWithin } from './json-size.ts';

const inJson = (bytes: Buffer) => Buffer.byteLength(JSON.stringify(decodeUtf8(bytes))) - 2;

const SAMPLES: [string, Buffer][] = [
  ['plain text', Buffer.from('plain text\nwith "quotes", \\ and a tab\t')],
  ['every character below 256', Buffer.from(Array.from({ length: 256 }, (_, n) => String.fromCharCode(n)).join(''))],
  ['long characters', Buffer.from('é😀\u2028\uFFFD\uFEFF')],
  ['NULs', Buffer.alloc(100)],
];

describe('the size of text in JSON', () => {
  test.each(SAMPLES)('is exact for %s', (_, bytes) => {
    expect(jsonSize(bytes, 'characters')).toBe(inJson(bytes));
  });

  test('is never underestimated for any bytes', () => {
    const bytes = Buffer.from(Array.from({ length: 2_000 }, (_, n) => (n * 7919) % 256));
    expect(jsonSize(bytes, 'characters')).toBeGreaterThanOrEqual(inJson(bytes));
    expect(jsonSize(bytes, 'bytes')).toBe(bytes.toString('base64').length);
  });

  test.each(SAMPLES)('finds the longest beginning and end of %s that fit', (_, bytes) => {
    for (const unit of ['characters', 'bytes'] as const) {
      for (let most = 0; most <= jsonSize(bytes, unit) + 4; most += 1) {
        const first = bytes.subarray(0, firstWithin(bytes, most, unit));
        const last = bytes.subarray(bytes.length - lastWithin(bytes, most, unit));
        // A cut inside a character leaves an invalid rest, which the truncation removes.
        const sizes = (part: Buffer) =>
          unit === 'bytes' ? jsonSize(part, unit) : Math.min(jsonSize(part, unit), most);
        expect(sizes(first)).toBeLessThanOrEqual(most);
        expect(sizes(last)).toBeLessThanOrEqual(most);
      }
      expect(firstWithin(bytes, 1e9, unit)).toBe(bytes.length);
      expect(lastWithin(bytes, 1e9, unit)).toBe(bytes.length);
    }
  });
});
