import { describe, expect, inject, test } from 'vitest';
import { runTrial } from '../rules-trial/run-trial.ts';
import { trialShells } from '../rules-trial/trial-shells.ts';

const dockerHost = inject('dockerHost');
const shells = trialShells(inject('sessionImage'), inject('testImages'));

describe('the trial of rules', () => {
  // `npm run rules-trial` generates 100,000 allowed scripts.
  test('finds no other program started by allowed scripts in bash, dash and ash', { timeout: 120_000 }, async () => {
    const { generated, executed, ...found } = await runTrial({ dockerHost, shells, seed: 10, count: 500 });
    expect(found).toEqual({ allowed: 500, wronglyAllowed: [] });
    // Scripts that start nothing, or that every reader would accept, prove nothing.
    expect(executed).toBeGreaterThan(1_333);
    expect(generated).toBeGreaterThan(3_333);
  });

  test('finds the scripts that a wrong reader allows', { timeout: 60_000 }, async () => {
    const admits = (script: string): boolean => script.startsWith('git status');
    const { wronglyAllowed } = await runTrial({ dockerHost, shells, seed: 11, count: 100, admits });
    expect(new Set(wronglyAllowed.map(({ shell }) => shell))).toEqual(new Set(shells.map(({ name }) => name)));
  });
});
