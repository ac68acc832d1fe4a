import { expect, test } from 'vitest';
import { runTrials } from '../../test-support/planted-trial.ts';

test('50,000 random chunkings of encoded secrets leak nothing and change nothing', () => {
  expect(runTrials(50_000, 1)).toEqual({ trials: 50_000, leaks: 0, differences: 0, failed: [] });
}, 120_000);
