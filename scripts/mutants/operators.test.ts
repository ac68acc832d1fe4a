import { describe, expect, test } from 'vitest';
import { type Language, maskCode } from './code-mask.ts';
import { mutantsOf } from './draw.ts';
import { editsOf } from './operators.ts';

function changed(source: string, language: Language): string[] {
  return editsOf(source, language).map(({ from, to, text }) => source.slice(0, from) + text + source.slice(to));
}

describe('mutants', () => {
  test.each<[Language, string, string]>([
    ['typescript', "const a: number = /[/\"]/.exec('x' + b); // c > d", 'const a         = §.exec(§ + b);         '],
    ['typescript', 'log(`${`}`} > 1`, b as string);', 'log(§, b          );'],
    ['c', '#define A 1\nif (a > "\\"1") b(); /* 1 */', '           \nif (a > §) b();        '],
    ['lua', "call('SET', 1) -- 2", 'call(§, 1)     '],
    ['shell', 'a=\'1\' "$b" # 2\n${c#3} \\" 4', 'a=§ §    \n${c#3} § 4'],
  ])('change no comment, type or string of %s', (language, source, code) => {
    const mask = maskCode(source, language);
    expect(mask.replaceAll(/\uE000+/g, '§')).toBe(code);
    expect(mask.length).toBe(source.length);
  });

  test.each<[Language, string, string[]]>([
    [
      'typescript',
      'if (a < 2) b();',
      ['if (a <= 2) b();', 'if (a < 3) b();', 'if (a < 1) b();', 'if (!(a < 2)) b();', ';'],
    ],
    ['typescript', 'move(a, b);', ['move(b, a);', ';']],
    ['typescript', 'function move(a, b) {}', []],
    ['c', '  kill(pid, SIGKILL);', ['  kill(SIGKILL, pid);', '  ;']],
    ['c', 'int left = 0;', ['int left = 1;']],
    ['lua', "redis.call('PERSIST', stream)", ["redis.call(stream, 'PERSIST')", '']],
    [
      'lua',
      "redis.call('HSET', key, 'a', x, 'b', f(y))",
      ['', "redis.call('HSET', key, 'b', f(y))", "redis.call('HSET', key, 'a', x)"],
    ],
    [
      'lua',
      'if a ~= b then return {-1} end',
      [
        'if a == b then return {-1} end',
        'if a ~= b then return {-2} end',
        'if a ~= b then return {-0} end',
        'if not (a ~= b) then return {-1} end',
        '',
      ],
    ],
    ['shell', '  command unset x', ['  :']],
    ['shell', '  a*) b && c ;;', ['  a*) b || c ;;', '  a*) ;;']],
  ])('of %s include every change of `%s`', (language, source, expected) => {
    expect(changed(source, language)).toEqual(expected);
  });

  test('depend on their seed in order, and not on edits elsewhere', () => {
    const source = 'drop(a);\nkeep(b);\n';
    const ids = (text: string, seed: number): string[] => mutantsOf('a.ts', text, seed).map(({ id }) => id);
    expect(ids(`// new\n${source}`, 1)).toEqual(ids(source, 1));
    expect(ids(source, 2)).not.toEqual(ids(source, 1));
  });
});
