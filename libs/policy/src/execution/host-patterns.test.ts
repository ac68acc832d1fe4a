import { describe, expect, test } from 'vitest';
import { isWithinPatterns, matchesPatterns } from './host-patterns.ts';

describe('patterns of host names', () => {
  test.each([
    ['example.org', 443, 'example.org', true],
    ['example.org', 80, 'example.org', true],
    ['example.org', 8443, 'example.org', false],
    ['example.org', 8443, 'example.org:8443', true],
    ['example.org', 443, 'example.org:8443', false],
    ['a.example.org', 443, 'example.org', false],
    ['a.example.org', 443, '*.example.org', true],
    ['a.b.example.org', 443, '*.example.org', true],
    ['example.org', 443, '*.example.org', false],
    ['notexample.org', 443, '*.example.org', false],
    ['example.org.evil.net', 443, '*.example.org', false],
  ])('decide about %s at port %i under %s: a match is %s', (name, port, pattern, expected) => {
    expect(matchesPatterns(name, port, ['other.net', pattern])).toBe(expected);
  });

  test.each([
    ['example.org', ['example.org'], true],
    ['example.org', ['*.example.org'], false],
    ['example.org:8443', ['example.org'], false],
    ['example.org:443', ['example.org'], true],
    ['example.org', ['example.org:443'], false],
    ['example.org', ['example.org:443', 'example.org:80'], true],
    ['*.example.org', ['*.example.org'], true],
    ['*.a.example.org', ['*.example.org'], true],
    ['*.example.org', ['*.a.example.org', 'example.org'], false],
    ['*.example.org:8443', ['*.example.org'], false],
    ['example.org', [], false],
  ])('are compared with each other: that %s is within %j is %s', (pattern, others, expected) => {
    expect(isWithinPatterns(pattern, others)).toBe(expected);
  });
});
