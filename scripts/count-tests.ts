import { readFile } from 'node:fs/promises';

/** The part of vitest's JSON report that is used for the last line. */
export type TestReport = {
  testResults: {
    name: string;
    status: string;
    message?: string;
    assertionResults: { status: string; fullName: string }[];
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
