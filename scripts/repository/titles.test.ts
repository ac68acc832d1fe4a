import { describe, expect, test } from 'vitest';
import { findInRepository, findTitles } from './titles.ts';

const long = 'a title that goes on and on until nobody who reads a report knows what it said';
const withId = 'S2-10: runs';

describe('the check of test titles', () => {
  test.each([
    [
      'no describe names the subject',
      `test('runs', () => {});`,
      [{ at: 'a.test.ts', problem: 'no describe names the subject' }],
    ],
    [
      'an id in a title',
      `describe('x', () => {\n  test('${withId}', f);`,
      [{ at: 'a.test.ts:2', problem: `holds an id: ${withId}` }],
    ],
    [
      'a long title',
      `describe('x', () => {\n  test.each([[1]])('${long}', f);`,
      [{ at: 'a.test.ts:2', problem: `17 words, 15 at most: ${long}` }],
    ],
  ])('finds %s', (_what, text, findings) => expect(findTitles('a.test.ts', text)).toEqual(findings));

  test('accepts an id in a comment', () => {
    expect(findTitles('a.test.ts', `describe('x', () => {\n  // S2-10\n  test('runs', f);`)).toEqual([]);
  });

  test('finds nothing in this repository', async () => {
    expect(await findInRepository()).toEqual([]);
  });
});
