import { describe, expect, test } from 'vitest';
import { countTests, hasPassed, listFailures } from './count-tests.ts';

const assertion = (status: string, fullName = status) => ({ status, fullName });

describe('the count of tests', () => {
  test('counts passed and failed tests, and names those that did not run', () => {
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

  test('lists failed tests with their first message, and files that could not be loaded', () => {
    const failed = { ...assertion('failed', 'b fails'), failureMessages: ['expected 1', 'expected 2'] };
    const report = {
      testResults: [
        { name: 'b', status: 'failed', assertionResults: [assertion('passed', 'b passes'), failed] },
        { name: 'c', status: 'failed', message: 'no such module', assertionResults: [] },
        { name: 'd', status: 'passed', assertionResults: [assertion('passed', 'd passes')] },
      ],
    };
    expect(listFailures(report)).toEqual([
      { file: 'b', fullName: 'b fails', message: 'expected 1' },
      { file: 'c', fullName: '', message: 'no such module' },
    ]);
  });

  test.each([
    ['passes', [assertion('passed', 'it')], true],
    ['fails again', [assertion('failed', 'it')], false],
    ['passes once and fails once, under one name', [assertion('passed', 'it'), assertion('failed', 'it')], false],
    ['is skipped', [assertion('skipped', 'it')], false],
    ['is no longer there', [assertion('passed', 'another')], false],
  ])('handles a failed test whose file runs again: it %s', (_, assertionResults, passed) => {
    const report = { testResults: [{ name: 'a', status: 'whatever', assertionResults }] };
    expect(hasPassed({ file: 'a', fullName: 'it', message: '' }, report)).toBe(passed);
    expect(hasPassed({ file: 'b', fullName: 'it', message: '' }, report)).toBe(false);
  });
});
