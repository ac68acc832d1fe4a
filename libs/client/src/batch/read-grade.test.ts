import type { Result } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { readGrade } from './read-grade.ts';

describe('grade of a task', () => {
  test.each<[string, Result['outcome'], string, boolean, number]>([
    ['passes with exit code 0 and the score 1', 'success', 'all well\n', true, 1],
    ['does not pass with another exit code, and has the score 0', 'failure', 'no\n', false, 0],
    ['has the number in its last line as score', 'success', '3 of 4\n0.75\n\n', true, 0.75],
    ['keeps the score of a failure', 'failure', '0.25\n', false, 0.25],
    ['does not pass when its JSON says so', 'success', '{"pass": false, "score": 2}\n', false, 2],
    ['does not pass by its JSON alone', 'failure', '{"pass": true}\n', false, 0],
    ['passes with a last line that is JSON of something else', 'success', '[1]\n', true, 1],
  ])('%s', (_what, outcome, stdout, passed, score) => {
    expect(readGrade({ outcome, stdout } as Result)).toEqual({ passed, score });
  });
});
