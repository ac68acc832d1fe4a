import { z } from 'zod';

const reportSchema = z.object({
  testResults: z.array(
    z.object({
      status: z.string(),
      name: z.string(),
      message: z.string().default(''),
      assertionResults: z.array(
        z.object({ status: z.string(), fullName: z.string(), failureMessages: z.array(z.string()).default([]) }),
      ),
    }),
  ),
});

export interface Row {
  result: 'passed' | 'failed' | 'not possible here';
  name: string;
  /** First line of the failure. */
  why?: string;
}

/** Returns a row for each test of a report of vitest, and one for each file that could not be run. */
export function toRows(report: unknown): Row[] {
  return reportSchema.parse(report).testResults.flatMap(({ status, name, message, assertionResults }): Row[] => {
    const rows = assertionResults.map(({ status: result, fullName, failureMessages: [why = ''] }): Row => {
      if (result === 'passed') return { result: 'passed', name: fullName };
      if (result === 'failed') return { result: 'failed', name: fullName, why: firstLine(why) };
      return { result: 'not possible here', name: fullName };
    });
    const isUnsaid = status === 'failed' && !rows.some(({ result }) => result === 'failed');
    return isUnsaid ? [...rows, { result: 'failed', name, why: firstLine(message) }] : rows;
  });
}

/** Draws the rows by their results, and a line with the counts. */
export function drawTable(rows: readonly Row[]): string {
  const results = ['passed', 'failed', 'not possible here'] as const;
  const sorted = results.flatMap((result) => rows.filter((row) => row.result === result));
  const width = Math.max(...results.map((result) => result.length));
  const lines = sorted.map(({ result, name, why }) => `${result.padEnd(width)}  ${name}${why ? `: ${why}` : ''}`);
  const counts = results.map((result) => `${rows.filter((row) => row.result === result).length} ${result}`);
  return [...lines, counts.join(', ')].join('\n');
}

const firstLine = (text: string) => text.split('\n')[0] ?? '';
