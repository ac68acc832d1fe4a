import type { WireResult } from '@shellfleet/protocol';
import type { SessionShell } from './session-shell.ts';
import type { ShellEnd } from './shell.ts';

/** What a Result says of the shell. Invariant 5: a loss is said once, with the first Result after it. `saidEpoch`: the one that a Result last said. */
export function describeShell(shell: SessionShell, saidEpoch: number, end?: ShellEnd): WireResult['shell'] {
  const { epoch } = shell;
  const gone = shell.death !== undefined || (!shell.hasSandbox && epoch > 0);
  if (gone) return { state: 'lost', reason: shell.lossReason || 'its host was lost', epoch };
  const isFresh = epoch !== saidEpoch && Math.max(saidEpoch, 1) !== epoch;
  if (isFresh) return { state: 'lost', reason: end?.shell.reason ?? shell.lossReason, epoch };
  if (end === undefined) return { state: 'kept', epoch };
  const { state, reason } = end.shell;
  return reason === undefined ? { state, epoch } : { state, reason, epoch };
}
