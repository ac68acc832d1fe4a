import { describe, expect, test } from 'vitest';
import { findFragments, findInRepository, findWideLines } from './comments.ts';

describe('the check of comments', () => {
  test.each([
    ['Of the shell that would run it.', 'begins without a subject: Of the shell that would run it.'],
    ['As in the options.', 'begins without a subject: As in the options.'],
    ['It has reached its loop.', 'begins without a subject: It has reached its loop.'],
    ['They count from 0.', 'begins without a subject: They count from 0.'],
    ['By tenant.', 'begins without a subject: By tenant.'],
    ['Undefined: none is known.', 'begins without a subject: Undefined: none is known.'],
    ['`by`: a person.', 'begins with a name and a colon: `by`: a person.'],
    ['Default: nothing.', 'begins with a name and a colon: Default: nothing.'],
  ])('refuses the docstring "%s"', (words, problem) => {
    const finding = { at: 'a.ts:2', problem };
    expect(findFragments('a.ts', `const a = 1;\n/** ${words} */\n`)).toEqual([finding]);
    expect(findFragments('a.ts', `const a = 1;\n  /**\n   * ${words}\n   */\n`)).toEqual([finding]);
    expect(findFragments('a.c', `int a;\n// ${words}\n`)).toEqual([{ ...finding, at: 'a.c:2' }]);
  });

  test('accepts a docstring that begins with its subject or verb', () => {
    expect(
      findFragments('a.ts', '/** Returns the part, undefined where none is known. */\n// Of all hosts.\n'),
    ).toEqual([]);
  });

  test('refuses a comment wider than 120 columns, except one long word', () => {
    const wide = `// ${'word '.repeat(30)}`;
    expect(findWideLines('a.lua', `-- short\n${wide.replace('//', '--')}\n`)).toEqual([
      { at: 'a.lua:2', problem: '153 columns, 120 at most' },
    ]);
    expect(findWideLines('a.ts', `// https://example.com/${'a'.repeat(150)}\n`)).toEqual([]);
  });

  test('finds nothing in this repository', async () => {
    expect(await findInRepository()).toEqual([]);
  });
});
