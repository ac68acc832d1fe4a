import { describe, expect, test } from 'vitest';
import { runTrials } from '../../test-support/planted-trial.ts';

describe('redaction of encoded secrets', () => {
  // Mutation testing has time for the short run only.
  test.each([
    [2_000, 2],
    [48_000, 1],
  ])(
    'leaks no secret and changes no other text in %i random chunkings',
    (trials, seed) => {
      expect(runTrials(trials, seed)).toEqual({ trials, leaks: 0, differences: 0, failed: [] });
    },
    120_000,
  );
});
