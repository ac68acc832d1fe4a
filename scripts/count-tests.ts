import { readFile } from 'node:fs/promises';

/** The part of vitest's JSON report that is used for the last line. */
export type TestReport = {
  testResults: {
    name: string;
    status: string;
    message?: string;
    assertionResults: { status: string; fullName: string; failureMessages?: string[] }[];
  }[];
};

export type Tally = { passed: number; failed: number };

/** `notRun` has the full names of the tests that were skipped. */
export type Count = Tally & { notRun: string[] };

/** Reads a report; one that does not exist has no tests. */
export async function readReport(path: string): Promise<TestReport> {
  const text = await readFile(path, 'utf8').catch(() => '{"testResults":[]}');
  return JSON.parse(text) as TestReport;
}

/**
 * Counts the tests that ran. One failure more is counted for a file that could not be loaded, since it has no tests in
 * the report, and for a run that failed although no test did (an error outside of any test).
 */
export function countTests(report: TestReport, endedWell: boolean): Count {
  const count: Count = { passed: 0, failed: 0, notRun: [] };
  for (const file of report.testResults) {
    for (const { status, fullName } of file.assertionResults) {
      if (status === 'passed') count.passed += 1;
      else if (status === 'failed') count.failed += 1;
      else count.notRun.push(fullName);
    }
    const failedInside = file.assertionResults.some(({ status }) => status === 'failed');
    if (file.status === 'failed' && !failedInside) count.failed += 1;
  }
  if (!endedWell && count.failed === 0) count.failed = 1;
  return count;
}

/** What failed in a report: a test, or a whole file (`fullName` is then empty) that could not be loaded. */
export type Failure = { file: string; fullName: string; message: string };

export function listFailures(report: TestReport): Failure[] {
  return report.testResults.flatMap(({ name: file, status, message = '', assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (status === 'failed' && failed.length === 0) return [{ file, fullName: '', message }];
    return failed.map(({ fullName, failureMessages = [] }) => ({ file, fullName, message: failureMessages[0] ?? '' }));
  });
}

/**
 * Whether what failed has passed in `report`, the report of a second run of its file. A test that is not in it has not.
 */
export function hasPassed({ file, fullName }: Failure, report: TestReport): boolean {
  const again = report.testResults.find(({ name }) => name === file);
  if (!again) return false;
  if (fullName === '') return again.status === 'passed';
  const named = again.assertionResults.filter((test) => test.fullName === fullName);
  return named.length > 0 && named.every(({ status }) => status === 'passed');
}
