/** The part of vitest's JSON report that the closing line is made from. */
export type TestReport = {
  testResults: {
    name: string;
    status: string;
    message?: string;
    assertionResults: { status: string; fullName: string }[];
  }[];
};

export type Count = { passed: number; failed: number; notRun: string[] };

/**
 * Counts what really ran. A file that could not be loaded has no tests in the report and is one failure; so is a run
 * that ended badly though no test did (an error outside of any test).
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
