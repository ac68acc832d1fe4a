import type { StoredChunk, StreamName } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { unstoredOutput } from './finish-entry.ts';

const piece = (stream: StreamName, rawFrom: number, rawTo: number) => ({ stream, rawFrom, rawTo }) as StoredChunk;
const first = piece('stdout', 0, 5);
const second = piece('stdout', 5, 9);
const error = piece('stderr', 0, 3);

describe('the output of a finish that Redis has in part', () => {
  test.each([
    ['the first piece of a stream', { stdout: 5, stderr: 0 }, [second, error]],
    ['a stream', { stdout: 0, stderr: 3 }, [first, second]],
    ['a piece of one stream, and the other', { stdout: 5, stderr: 3 }, [second]],
    ['all', { stdout: 9, stderr: 3 }, []],
  ])('is sent without %s that Redis has, and with everything else', (_what, offsets, rest) => {
    expect(unstoredOutput([first, second, error], offsets)).toEqual(rest);
  });

  test('cannot continue when Redis has none of the output', () => {
    expect(unstoredOutput([first, second, error], { stdout: 0, stderr: 0 })).toBeUndefined();
  });
});
