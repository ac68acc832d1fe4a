import { expect, test } from 'vitest';
import { runTrials } from '../../test-support/planted-trial.ts';

// Mutation testing has time for the short run only.
test.each([
  [2_000, 2],
  [48_000, 1],
])(
  '%i random chunkings of encoded secrets leak nothing and change nothing',
  (trials, seed) => {
    expect(runTrials(trials, seed)).toEqual({ trials, leaks: 0, differences: 0, failed: [] });
  },
  120_000,
);
