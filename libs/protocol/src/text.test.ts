import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toCanonicalJson } from './canonical-json.ts';
import { byteLength, hasLoneSurrogate } from './text.ts';

test('the length in bytes is that of the UTF-8 of a text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(byteLength(text)).toBe(Buffer.byteLength(text));
    }),
  );
  expect(byteLength('aé€😀\0')).toBe(1 + 2 + 3 + 4 + 1);
});

test('a lone surrogate is found wherever it stands', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 0xffff }), { maxLength: 20 }), (units) => {
      const text = String.fromCharCode(...units);
      expect(hasLoneSurrogate(text)).toBe(!text.isWellFormed());
    }),
  );
});

test('canonical JSON is the same for equal values, in whatever order they were written', () => {
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

test('canonical JSON differs for values that differ, the order of lists included', () => {
  expect(toCanonicalJson({ a: [1, 2] })).not.toBe(toCanonicalJson({ a: [2, 1] }));
  expect(toCanonicalJson({ b: 1, a: { d: 1, c: undefined } })).toBe('{"a":{"d":1},"b":1}');
});
