import { describe, expect, test } from 'vitest';
import { NotJsonError, toJsonText, tryJson } from './json-text.ts';

const cycle: { self?: unknown } = {};
cycle.self = [cycle];
let deep: unknown = 1;
for (let depth = 0; depth < 10_000; depth++) deep = [deep];

describe('JSON text', () => {
  // S4-09
  test.each([
    ['undefined', undefined, 'args is undefined'],
    ['a property that is undefined', { a: { b: undefined } }, 'args.a.b is undefined'],
    ['NaN', [0, Number.NaN], 'args[1] is NaN'],
    ['infinity', { a: Number.POSITIVE_INFINITY }, 'args.a is Infinity'],
    ['a BigInt', { a: 1n }, 'args.a is a BigInt'],
    ['a function', { a: () => 1 }, 'args.a is a function'],
    ['a symbol', Symbol('s'), 'args is a symbol'],
    ['a date', { a: new Date(0) }, 'args.a is a Date'],
    ['bytes', { a: new Uint8Array(2) }, 'args.a is a Uint8Array'],
    ['a map', new Map(), 'args is a Map'],
    ['an instance', new (class Point {})(), 'args is a Point'],
    ['a hole', [1, ...new Array(1), 3], 'args[1] is undefined'],
    ['a toJSON of its own', { toJSON: () => 'other' }, 'args.toJSON is a function'],
    ['a cycle', cycle, 'args.self[0] holds itself'],
    ['what is nested too deep', deep, 'it is nested more than 500 deep'],
  ])('refuses %s and names its place in the value', (_what, value, message) => {
    expect(() => toJsonText(value, 'args')).toThrow(NotJsonError);
    expect(() => toJsonText(value, 'args')).toThrow(message);
  });

  test('keeps plain values, even a value that occurs in two places', () => {
    const shared = { n: 1 };
    const value = { a: [null, true, -1.5, 'ü\ud800'], b: shared, c: [shared], d: Object.create(null) };
    expect(JSON.parse(toJsonText(value, 'args'))).toEqual({ ...value, d: {} });
  });

  test('treats __proto__ like any other key, and changes no prototype', () => {
    const value = JSON.parse('{"__proto__": {"admin": true}}');
    const text = toJsonText(value, 'args');
    expect(text).toBe('{"__proto__":{"admin":true}}');
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  test('reads a getter once, even if it returns another value each time', () => {
    let reads = 0;
    const value = {
      get a() {
        reads += 1;
        return reads === 1 ? 1 : Number.NaN;
      },
    };
    expect(toJsonText(value, 'args')).toBe('{"a":1}');
  });

  test.each<[string | null | undefined, unknown]>([
    ['{"a":[1]}', { a: [1] }],
    ['null', null],
    ['{"a":', undefined],
    ['', undefined],
    [null, undefined],
    [undefined, undefined],
  ])('parses %j from outside to %j', (text, value) => {
    expect(tryJson(text)).toEqual(value);
  });
});
