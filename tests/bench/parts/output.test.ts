import { expect, test } from 'vitest';
import { ratesOf } from './output.ts';

test('rates are read from the lines of both programs, and a program without any is an error', () => {
  expect(ratesOf('yes, all built-in rules: 282 MB/s [254–338]\nbuild logs, all: 97.5 MB/s [91–128]\n')).toEqual({
    'yes, all built-in rules': { value: 282, min: 254, max: 338 },
    'build logs, all': { value: 97.5, min: 91, max: 128 },
  });
  expect(
    ratesOf('4 MiB in pieces of 64 KiB, the slowest first\n    76.5  hosts\n  1216.1  a line without end\n'),
  ).toEqual({
    hosts: { value: 76.5, min: 76.5, max: 76.5 },
    'a line without end': { value: 1216.1, min: 1216.1, max: 1216.1 },
  });
  expect(() => ratesOf('Error: nothing\n')).toThrow('no rate was measured: Error: nothing');
});
