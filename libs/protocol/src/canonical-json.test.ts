import { describe, expect, test } from 'vitest';
import { toCanonicalJson } from './canonical-json.ts';

describe('canonical JSON', () => {
  test('sorts names by UTF-16 code units, as RFC 8785 (3.2.3) shows', () => {
    const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 };
    expect(toCanonicalJson(value)).toBe('{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}');
  });

  test('sorts names that look like numbers as texts', () => {
    expect(toCanonicalJson({ 9: 'a', 10: 'b', '-1': 'c' })).toBe('{"-1":"c","10":"b","9":"a"}');
  });

  test('writes numbers and texts as RFC 8785 (3.2.2) shows', () => {
    const numbers = [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 1e-27, -0];
    expect(toCanonicalJson({ numbers, string: '\u20ac$\u000f\nA\'B"/', literals: [null, true, false] })).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27,0],"string":"\u20ac$\\u000f\\nA\'B\\"/"}',
    );
  });

  test('is equal for equal values, whatever the order of names and undefined fields', () => {
    const value = { b: [{ d: 1, c: undefined }], a: { y: 1, x: 2 } };
    expect(toCanonicalJson(value)).toBe('{"a":{"x":2,"y":1},"b":[{"d":1}]}');
    expect(toCanonicalJson(JSON.parse('{"__proto__":1,"a":2}'))).toBe('{"__proto__":1,"a":2}');
  });
});
