import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { countTasks } from './run-tasks.ts';

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-tasks-'));
  await mkdir(join(directory, '.cache/unit/@shellfleet'), { recursive: true });
  const assertionResults = ['passed', 'passed', 'skipped'].map((status) => ({ status, fullName: status }));
  const report = { testResults: [{ name: 'a', status: 'passed', assertionResults }] };
  await writeFile(join(directory, '.cache/unit/@shellfleet/a.json'), JSON.stringify(report));
});

afterAll(() => rm(directory, { recursive: true, force: true }));

describe('the count of tasks', () => {
  test.each([
    ['a check that passed', { 'a:lint': 'success' }, { passed: 1, failed: 0 }],
    ['a check whose success is cached', { 'a:lint': 'local-cache-kept-existing' }, { passed: 1, failed: 0 }],
    ['a check that failed', { 'a:lint': 'failure' }, { passed: 0, failed: 1 }],
    ['a check that did not run', { 'a:lint': 'skipped' }, { passed: 0, failed: 1 }],
    ['the tests of a report, but none that was skipped', { '@shellfleet/a:unit': 'success' }, { passed: 2, failed: 0 }],
    ['the tests of a cached report', { '@shellfleet/a:unit': 'local-cache' }, { passed: 2, failed: 0 }],
    ['a failure outside of any test', { '@shellfleet/a:unit': 'failure' }, { passed: 2, failed: 1 }],
    [
      'a cached success without a report as a failure',
      { '@shellfleet/b:unit': 'local-cache' },
      { passed: 0, failed: 1 },
    ],
    ['tests that were stopped before a report', { '@shellfleet/b:unit': 'stopped' }, { passed: 0, failed: 1 }],
    ['a run without tasks as a failure', {}, { passed: 0, failed: 1 }],
  ] as const)('counts %s', async (_name, statuses, expected) => {
    expect(await countTasks(directory, statuses, () => {})).toEqual(expected);
  });
});
