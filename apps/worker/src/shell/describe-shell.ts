import type { WireResult } from '@shellfleet/protocol';
import type { SessionShell } from './session-shell.ts';
import type { ShellEnd } from './shell.ts';

/** Returns the `shell` field of a Result: whether its state was kept. One Result reports each loss (invariant 5). */
export function describeShell(shell: SessionShell, end?: ShellEnd): WireResult['shell'] {
  const { epoch, reportedEpoch } = shell;
  const isGone = shell.death !== undefined || (!shell.hasSandbox && epoch > 0);
  if (isGone) return { state: 'lost', reason: shell.lossReason, epoch };
  const isFresh = epoch !== reportedEpoch && Math.max(reportedEpoch, 1) !== epoch;
  if (isFresh) return { state: 'lost', reason: end?.shell.reason ?? shell.lossReason, epoch };
  if (end === undefined) return { state: 'kept', epoch };
  const { state, reason } = end.shell;
  return state === 'kept' ? { state, epoch } : { state, reason: reason ?? 'the shell gave no reason', epoch };
}
