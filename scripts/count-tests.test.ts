import { expect, test } from 'vitest';
import { countTests } from './count-tests.ts';

const assertion = (status: string, fullName = status) => ({ status, fullName });

test('counts what passed and what failed, and names what did not run', () => {
  const assertionResults = [
    assertion('passed'),
    assertion('passed'),
    assertion('failed'),
    assertion('skipped', 'later'),
  ];
  const report = { testResults: [{ name: 'a', status: 'failed', assertionResults }] };
  expect(countTests(report, false)).toEqual({ passed: 2, failed: 1, notRun: ['later'] });
});

test('counts a file that could not be loaded as a failure', () => {
  const report = { testResults: [{ name: 'a', status: 'failed', assertionResults: [] }] };
  expect(countTests(report, false)).toEqual({ passed: 0, failed: 1, notRun: [] });
});

test('counts an error outside of any test as a failure', () => {
  const report = { testResults: [{ name: 'a', status: 'passed', assertionResults: [assertion('passed')] }] };
  expect(countTests(report, false)).toEqual({ passed: 1, failed: 1, notRun: [] });
});
