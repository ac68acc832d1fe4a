import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toCanonicalJson } from './canonical-json.ts';
import { byteLength, hasLoneSurrogate } from './text.ts';

describe('texts', () => {
  test('byteLength is the length in UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(byteLength(text)).toBe(Buffer.byteLength(text));
      }),
    );
    expect(byteLength('aé€😀\0')).toBe(1 + 2 + 3 + 4 + 1);
  });

  test('hasLoneSurrogate finds a lone surrogate at any position', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 0xffff }), { maxLength: 20 }), (units) => {
        const text = String.fromCharCode(...units);
        expect(hasLoneSurrogate(text)).toBe(!text.isWellFormed());
      }),
    );
  });

  test('canonical JSON is the same for equal values, whatever order they were written in', () => {
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed);
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, inner]) => [key, reversed(inner)]),
      );
    };
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = toCanonicalJson(value);
        expect(toCanonicalJson(reversed(value))).toBe(text);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('canonical JSON differs for different values and different orders of lists', () => {
    expect(toCanonicalJson({ a: [1, 2] })).not.toBe(toCanonicalJson({ a: [2, 1] }));
    expect(toCanonicalJson({ b: 1, a: { d: 1, c: undefined } })).toBe('{"a":{"d":1},"b":1}');
  });
});
