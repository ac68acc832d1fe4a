import type { Result } from '@shellfleet/client';
import type { SeenResult } from '../history/history.ts';
import { describe } from '../plan/operations.ts';

/** Shortens a Result so that it can be recorded. */
export function toSeenResult(result: Result): SeenResult {
  const { outcome, exitCode, reason, error, stdout, stderr, truncated, totals, shell, hostId } = result;
  const end = stdout.indexOf('\n') + 1;
  return {
    outcome,
    exitCode,
    ...(reason === undefined ? {} : { reason }),
    ...(error === undefined ? {} : { errorCode: error.code, errorMessage: error.message }),
    head: stdout.slice(0, Math.max(0, end - 1)),
    stdout: describe(stdout.slice(end)),
    stderr: describe(stderr),
    truncated: truncated.bytes || truncated.lines,
    totals: { stdoutBytes: totals.stdoutBytes, stderrBytes: totals.stderrBytes },
    shell,
    hostId,
  };
}
