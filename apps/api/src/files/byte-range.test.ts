import { describe, expect, test } from 'vitest';
import { parseRange } from './byte-range.ts';

describe('a range of a file of 10 bytes', () => {
  test.each<[string | undefined, [number, number] | undefined]>([
    ['bytes=0-3', [0, 4]],
    ['bytes=4-', [4, 6]],
    ['bytes=-3', [7, 3]],
    ['bytes=-30', [0, 10]],
    ['Bytes=8-100', [8, 2]],
    ['bytes=9-9', [9, 1]],
    [undefined, undefined],
    ['lines=0-3', undefined],
    ['bytes=3-1', undefined],
    ['bytes=-', undefined],
    ['bytes=a-b', undefined],
  ])('is %j → %j', (header, expected) => {
    const range = parseRange(header, 10);
    expect(range && [range.offset, range.length]).toEqual(expected);
  });

  test.each(['bytes=10-', 'bytes=-0', 'bytes=0-1,3-4'])('is refused with 416: %s', (header) => {
    expect(() => parseRange(header, 10)).toThrow(
      expect.objectContaining({ status: 416, headers: expect.objectContaining({ 'content-range': 'bytes */10' }) }),
    );
  });

  test('does not exist in an empty file', () => {
    expect(() => parseRange('bytes=0-', 0)).toThrow(expect.objectContaining({ status: 416 }));
  });
});
