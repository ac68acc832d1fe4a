import { expect, test } from 'vitest';
import { ratesOf } from './output.ts';

test('rates are read from the lines of both programs, and a program without any is an error', () => {
  expect(ratesOf('yes, all built-in rules: 282 MB/s [254–338]\nbuild logs, all: 97.5 MB/s [91–128]\n')).toEqual({
    'yes, all built-in rules': 282,
    'build logs, all': 97.5,
  });
  expect(
    ratesOf('4 MiB in pieces of 64 KiB, the slowest first\n    76.5  hosts\n  1216.1  a line without end\n'),
  ).toEqual({
    hosts: 76.5,
    'a line without end': 1216.1,
  });
  expect(() => ratesOf('Error: nothing\n')).toThrow('no rate was measured: Error: nothing');
});
