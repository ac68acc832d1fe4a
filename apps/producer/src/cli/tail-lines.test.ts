import { describe, expect, test } from 'vitest';
import { TailLines } from './tail-lines.ts';

const cut = <T extends { data: Uint8Array }>(piece: T, from: number): T => ({
  ...piece,
  data: piece.data.subarray(from),
});

const TEXT = 'one\ntwo\n\nfour\nfive';

describe('the tail of a text', () => {
  test.each([
    [1, TEXT, 'five'],
    [2, TEXT, 'four\nfive'],
    [3, TEXT, '\nfour\nfive'],
    [5, TEXT, TEXT],
    [9, TEXT, TEXT],
    [1, 'one\ntwo\n', 'two\n'],
    [2, 'one\ntwo\n', 'one\ntwo\n'],
    [1, '', ''],
    [1, '\n', '\n'],
  ])('has the last %i lines of %j, which are %j, for any cut', (lines, text, expected) => {
    const bytes = Buffer.from(text);
    for (let first = 0; first <= bytes.length; first += 1)
      for (let second = first; second <= bytes.length; second += 1) {
        const tail = new TailLines<{ data: Uint8Array }>(lines, cut);
        for (const [from, to] of [
          [0, first],
          [first, second],
          [second, bytes.length],
        ])
          tail.push({ data: bytes.subarray(from, to) });
        expect(Buffer.concat(tail.end().map(({ data }) => data)).toString()).toBe(expected);
      }
  });

  test('drops lines that are no longer needed', () => {
    const tail = new TailLines<{ data: Uint8Array; index: number }>(2, cut);
    for (let index = 0; index < 100; index += 1) tail.push({ data: Buffer.from(`${index}\n`), index });
    expect(tail.end().map(({ index }) => index)).toEqual([98, 99]);
  });
});
