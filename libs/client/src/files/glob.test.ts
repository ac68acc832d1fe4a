import { describe, expect, test } from 'vitest';
import { parseGlob } from './glob.ts';

describe('glob', () => {
  test.each([
    ['/a/*.ts', 'x.ts', true],
    ['/a/*.ts', 'sub/x.ts', false],
    ['/a/*.ts', '.x.ts', false],
    ['/a/.*', '.x', true],
    ['/a/**/x', 'x', true],
    ['/a/**/x', 'b/c/x', true],
    ['/a/**/x', '.b/x', false],
    ['/a/**', 'b/c', true],
    ['/a/**/b/**/c', 'x/b/y/z/c', true],
    ['/a/**/b/**/c', 'x/y/z/c', false],
    ['/a/?', 'é', true],
    ['/a/?', '😀', true],
    ['/a/[a-c]', 'b', true],
    ['/a/[!a-c]', 'b', false],
    ['/a/[]x]', ']', true],
    ['/a/[', '[', true],
    ['/a/a*b*c', 'a-b-b-c', true],
    ['/a/a*b*c', 'a-b-b-d', false],
  ])('compares %s with the name %s, and returns %s', (pattern, name, matches) => {
    expect(parseGlob(pattern)?.matches(name)).toBe(matches);
  });

  test('walks from the directory before the first wildcard, only as deep as necessary', () => {
    expect(parseGlob('/a/b/*/c')).toMatchObject({ base: '/a/b', depth: 2 });
    expect(parseGlob('/*')).toMatchObject({ base: '/', depth: 1 });
    expect(parseGlob('/a/**/c')).toMatchObject({ base: '/a', depth: 0 });
    expect(parseGlob('/a/b')).toBeUndefined();
  });

  test('takes no noticeable time for a name that almost matches many stars', () => {
    const pattern = `/a/${'*a'.repeat(60)}b`;
    expect(parseGlob(pattern)?.matches('a'.repeat(255))).toBe(false);
    expect(parseGlob(`/a/${'**/'.repeat(60)}b`)?.matches('x/'.repeat(500))).toBe(false);
  });
});
