import type { Expectation, Printed, SeenOutput } from '../history/history.ts';
import type { Case } from './check.ts';
import { isCutShort } from './permits.ts';

/** Checks that the bytes of Results and readers equal the command's output. */
export function checkOutput({ operations, permits, report }: Case): void {
  for (const { operation, results, outputs, submittedAt, endedAt } of operations) {
    // Output that Redis had acknowledged and lost is missing, too.
    if (permits.tailLost(submittedAt, endedAt)) continue;
    const { id, expect } = operation;
    for (const result of results) {
      if (isCutShort(result)) continue;
      const headBytes = Buffer.byteLength(result.head) + 1;
      const totals = { stdout: result.totals.stdoutBytes - headBytes, stderr: result.totals.stderrBytes };
      for (const name of ['stdout', 'stderr'] as const) {
        if (totals[name] !== expect[name].bytes)
          report(
            'output',
            `${id}: ${name} has ${totals[name]} bytes in its Result, ${expect[name].bytes} were printed`,
          );
        else if (!result.truncated && !isEqual(result[name], expect[name]))
          report('output', `${id}: the bytes of ${name} in its Result are not those that were printed`);
      }
      if (!result.head.startsWith(`${id} `)) report('output', `${id}: its output begins with '${result.head}'`);
    }
    if (results.length === 0 || results.some(isCutShort)) continue;
    for (const seen of outputs) checkReading(id, seen, expect, report);
  }
}

function checkReading(
  id: string,
  seen: { stdout: SeenOutput; stderr: SeenOutput },
  expect: Expectation,
  report: Case['report'],
): void {
  for (const name of ['stdout', 'stderr'] as const) {
    const { bytes, omittedBytes } = seen[name];
    if (bytes + omittedBytes !== expect[name].bytes)
      report(
        'output',
        `${id}: a reader had ${bytes} bytes of ${name} and ${omittedBytes} omitted of ${expect[name].bytes}`,
      );
    else if (omittedBytes === 0 && !isEqual(seen[name], expect[name]))
      report('output', `${id}: a reader had other bytes of ${name} than were printed`);
  }
}

function isEqual(a: Printed, b: Printed): boolean {
  return a.bytes === b.bytes && a.sha256 === b.sha256;
}
