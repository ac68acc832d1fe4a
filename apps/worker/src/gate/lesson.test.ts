import { describe, expect, test } from 'vitest';
import { factorOf, isPaused, type Lesson, learn } from './lesson.ts';

const MINUTE = 60_000;
const after = (...times: number[]) => times.reduce<Lesson | undefined>((lesson, at) => learn(lesson, at), undefined);

describe('a host whose memory ran out', () => {
  test.each([
    ['keeps more free', [0], 0, 2],
    ['counts kills that follow each other once', [0, 3_000, 12_000], 12_000, 2],
    ['keeps more free each further time', [0, MINUTE, 2 * MINUTE], 2 * MINUTE, 8],
    ['stops at a bound', [0, 1, 2, 3, 4, 5, 6].map((at) => at * MINUTE), 6 * MINUTE, 16],
    ['keeps less free after ten minutes', [0, MINUTE], 11 * MINUTE, 2],
    ['forgets it in the end', [0, MINUTE], 60 * MINUTE, 1],
    ['keeps what it had without kills', [], 0, 1],
  ])('%s', (_what, kills, nowMs, factor) => {
    expect(factorOf(after(...kills), nowMs)).toBe(factor);
  });

  test('takes no session for ten seconds', () => {
    expect([0, 9_999, 10_000].map((nowMs) => isPaused(after(0), nowMs))).toEqual([true, true, false]);
    expect(isPaused(undefined, 0)).toBe(false);
  });
});
