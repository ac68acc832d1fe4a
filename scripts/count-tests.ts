import { readFile } from 'node:fs/promises';

/** The fields of vitest's JSON report that the last line needs. */
export type TestReport = {
  testResults: {
    name: string;
    status: string;
    message?: string;
    assertionResults: { status: string; fullName: string; failureMessages?: string[] }[];
  }[];
};

export type Tally = { passed: number; failed: number };

/** `notRun` has the full names of the skipped tests. */
export type Count = Tally & { notRun: string[] };

/** Reads a report. A missing report counts as one without tests. */
export async function readReport(path: string): Promise<TestReport> {
  const text = await readFile(path, 'utf8').catch(() => '{"testResults":[]}');
  return JSON.parse(text) as TestReport;
}

/**
 * Counts the tests that ran. A file that could not be loaded, and a run that failed without a failed test, each count
 * as one more failure, because the report has no test for them.
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

/** Failed test, or a file that could not be loaded (`fullName` is then empty). */
export type Failure = { file: string; fullName: string; message: string };

export function listFailures(report: TestReport): Failure[] {
  return report.testResults.flatMap(({ name: file, status, message = '', assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (status === 'failed' && failed.length === 0) return [{ file, fullName: '', message }];
    return failed.map(({ fullName, failureMessages = [] }) => ({ file, fullName, message: failureMessages[0] ?? '' }));
  });
}

/** Returns true if a failed test has passed in `report`, the report of a second run of its file. */
export function hasPassed({ file, fullName }: Failure, report: TestReport): boolean {
  const again = report.testResults.find(({ name }) => name === file);
  if (!again) return false;
  if (fullName === '') return again.status === 'passed';
  const named = again.assertionResults.filter((test) => test.fullName === fullName);
  return named.length > 0 && named.every(({ status }) => status === 'passed');
}
