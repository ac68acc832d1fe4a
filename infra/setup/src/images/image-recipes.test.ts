import { describe, expect, test } from 'vitest';
import { chooseMirror } from './debian-mirror.ts';
import { isRecent } from './pull-image.ts';
import { recipeHash } from './recipe-hash.ts';
import { parsePackages } from './session-recipe.ts';

describe('recipes of images', () => {
  test('read a list of packages with its comments', () => {
    expect(parsePackages('# why\nmawk\n\n  git # for fetching\n')).toEqual(['mawk', 'git']);
  });

  test('name an image by its parts, and not by their concatenation', () => {
    expect(recipeHash(['ab', 'c'])).not.toBe(recipeHash(['a', 'bc']));
    expect(recipeHash(['ab', 'c'])).toBe(recipeHash(['ab', 'c']));
  });

  test.each([
    ['http://a.example/debian/ trixie main', { url: 'http://a.example/debian', suite: 'trixie' }],
    [
      'http://a.example/debian bookworm-updates main\nhttp://b.example/debian bookworm main',
      { url: 'http://b.example/debian', suite: 'bookworm' },
    ],
    [
      'https://vendor.example/apt stable main\nhttp://a.example/debian bookworm contrib',
      { url: 'http://deb.debian.org/debian', suite: 'bookworm' },
    ],
    ['', { url: 'http://deb.debian.org/debian', suite: 'bookworm' }],
  ])('choose the archive with a whole system from %j', (targets, mirror) => {
    expect(chooseMirror(targets)).toEqual(mirror);
  });

  test('retry a failed pull after an hour, and after the clock was set back', () => {
    const failedAt = 10_000_000;
    expect(isRecent(failedAt, failedAt + 60_000)).toBe(true);
    expect(isRecent(failedAt, failedAt + 3_600_000)).toBe(false);
    expect(isRecent(failedAt, failedAt - 1)).toBe(false);
    expect(isRecent(undefined, failedAt)).toBe(false);
  });
});
