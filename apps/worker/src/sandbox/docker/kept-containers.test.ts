import { describe, expect, test } from 'vitest';
import { beyondBounds, keptAtOf } from './kept-containers.ts';

const kept = [30, 10, 20].map((keptAt) => ({ keptAt }));

// S0-38
describe('containers that are kept for a post-mortem', () => {
  test.each([
    ['the newest stay, up to the number', { containers: 2, ageMs: 1_000 }, [10]],
    ['none that has reached the age stays', { containers: 9, ageMs: 20 }, [20, 10]],
    ['none stays if the number is 0', { containers: 0, ageMs: 1_000 }, [30, 20, 10]],
  ])('%s', (_, bounds, gone) => {
    expect(beyondBounds(kept, bounds, 40).map(({ keptAt }) => keptAt)).toEqual(gone);
  });

  test('reads the time from the name of a kept container, and from no other', () => {
    expect([['/shellfleet-kept-17-0a'], ['/shellfleet-s-kept-17-0a']].map((Names) => keptAtOf({ Names }))).toEqual([
      17,
      undefined,
    ]);
  });
});
