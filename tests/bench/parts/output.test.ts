import { describe, expect, test } from 'vitest';
import { ratesOf } from './output.ts';

describe('the rates of output', () => {
  test('are read from both programs, and a program without rates is an error', () => {
    expect(
      ratesOf(
        '4 MiB in pieces of 64 KiB\nyes, all built-in rules: 282 MB/s [254–338]\nbuild logs, all: 97.5 MB/s [91–128]\n',
      ),
    ).toEqual({
      'yes, all built-in rules': { value: 282, min: 254, max: 338 },
      'build logs, all': { value: 97.5, min: 91, max: 128 },
    });
    expect(() => ratesOf('Error: nothing\n')).toThrow('no rate was measured: Error: nothing');
  });
});
