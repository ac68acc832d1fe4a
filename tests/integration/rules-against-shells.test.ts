import { expect, inject, test } from 'vitest';
import { runTrial } from '../rules-trial/run-trial.ts';
import { trialShells } from '../rules-trial/trial-shells.ts';

const dockerHost = inject('dockerHost');
const shells = trialShells(inject('sessionImage'), inject('testImages'));

// The long run is `npm run rules-trial`.
test('what rules allow starts no other program in bash, dash and ash', { timeout: 120_000 }, async () => {
  const { generated, executed, ...found } = await runTrial({ dockerHost, shells, seed: 10, count: 500 });
  expect(found).toEqual({ allowed: 500, wronglyAllowed: [] });
  // Scripts that start nothing, or that nobody would refuse, prove nothing.
  expect(executed).toBeGreaterThan(1_300);
  expect(generated).toBeGreaterThan(3_300);
});

test('the trial finds what a wrong reader of scripts allows', { timeout: 60_000 }, async () => {
  const admits = (script: string): boolean => script.startsWith('git status');
  const { wronglyAllowed } = await runTrial({ dockerHost, shells, seed: 11, count: 100, admits });
  expect(new Set(wronglyAllowed.map(({ shell }) => shell))).toEqual(new Set(shells.map(({ name }) => name)));
});
