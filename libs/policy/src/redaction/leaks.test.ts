import { expect, test } from 'vitest';
import { runTrials } from '../../test-support/planted-trial.ts';

// The short run is what mutation testing has time for.
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
