import type { Entry } from '@shellfleet/mailbox';
import { emptyResult, type Outcome, type Reason, ShellfleetError, type WireResult } from '@shellfleet/protocol';
import type { CleanTexts } from '../output/clean-output.ts';
import type { Blocked } from '../output/redactor.ts';
import { describeShell } from '../shell/describe-shell.ts';
import type { SessionShell } from '../shell/session-shell.ts';
import type { ShellEnd } from '../shell/shell.ts';
import type { EntryResult } from './entry-run.ts';
import type { SessionContext } from './session-context.ts';

/** The fields that every Result of an entry has, however it ended. */
export interface ResultBase {
  sessionId: string;
  hostId: string;
  shell: WireResult['shell'];
  timings: WireResult['timings'];
}

/** `end`: when the shell reported one. */
export function resultBase(entry: Entry, session: SessionContext, shell: SessionShell, end?: ShellEnd): ResultBase {
  return {
    sessionId: session.owner.keys.session,
    hostId: session.owner.host,
    shell: describeShell(shell, end),
    timings: toTimings(entry, shell.opened, end?.runMs ?? 0),
  };
}

/** An entry that ends with an error of the fleet, without output or answer. */
export function failedEntry(
  entry: Entry,
  error: ShellfleetError,
  session: SessionContext,
  shell: SessionShell,
): EntryResult {
  return { result: toErrorResult(error, resultBase(entry, session, shell)), output: [] };
}

/** An entry that started and whose end is not known, without output or answer. */
export function lostEntry(entry: Entry, reason: LossReason, session: SessionContext, shell: SessionShell): EntryResult {
  return { result: toLostResult(resultBase(entry, session, shell), reason), output: [] };
}

/** Splits the time since acceptance into queueing, opening the shell and running. Clocks of Redis and of the host may differ, so each is at least 0. */
function toTimings(entry: Entry, opened: SessionShell['opened'], runMs: number): WireResult['timings'] {
  const waited = Math.max(0, entry.startedAt - entry.acceptedAt);
  const startMs = Math.min(waited, Math.max(0, opened.to - Math.max(entry.acceptedAt, opened.from)));
  return { queuedMs: waited - startMs, startMs, runMs, totalMs: waited + runMs };
}

const OUTCOMES: Record<ShellEnd['reason'], { outcome: Outcome | 'by-exit-code'; reason: Reason }> = {
  exited: { outcome: 'by-exit-code', reason: 'exited' },
  signalled: { outcome: 'failure', reason: 'signalled' },
  oom: { outcome: 'failure', reason: 'oom' },
  wall: { outcome: 'timeout', reason: 'wall' },
  'no-output': { outcome: 'timeout', reason: 'no-output' },
  cancelled: { outcome: 'cancellation', reason: 'cancelled' },
  cwd: { outcome: 'error', reason: 'exited' },
  syntax: { outcome: 'failure', reason: 'exited' },
};

/** The Result of a command that its shell ended. */
export function toCommandResult(end: ShellEnd, texts: CleanTexts, base: ResultBase, cwd?: string): WireResult {
  const { outcome, reason } = OUTCOMES[end.reason];
  // A stopped command has no exit code of its own.
  const exitCode = outcome === 'timeout' || outcome === 'cancellation' ? null : end.exitCode;
  return {
    ...emptyResult(outcome === 'by-exit-code' ? (exitCode === 0 ? 'success' : 'failure') : outcome),
    exitCode,
    signal: end.signal,
    ...(end.reason === 'cwd' ? { error: missingCwd(base.sessionId, cwd ?? '') } : { reason }),
    ...texts,
    shell: base.shell,
    timings: base.timings,
    hostId: base.hostId,
  };
}

/** The Result of an entry that ends with an error of the fleet, with its output so far. */
export function toErrorResult(
  error: ShellfleetError,
  base: ResultBase,
  texts?: CleanTexts,
  reason?: Reason,
): WireResult {
  return {
    ...emptyResult('error'),
    ...texts,
    ...(reason === undefined ? {} : { reason }),
    error: error.toJSON(),
    shell: base.shell,
    timings: base.timings,
    hostId: base.hostId,
  };
}

/** Reports that a rule withheld the output. A timeout, a cancellation, an error or a loss remains the outcome. */
export function withBlocked(result: WireResult, blocked: Blocked | undefined): WireResult {
  if (blocked === undefined) return result;
  const isOwnEnd = result.outcome === 'success' || result.outcome === 'failure';
  const { outcome, error } = isOwnEnd ? { outcome: 'blocked' as const } : result;
  return { ...result, outcome, error: error ?? outputBlocked(blocked).toJSON() };
}

function outputBlocked({ type, reason }: Blocked): ShellfleetError {
  const message =
    reason === 'matched'
      ? `Output blocked: detected ${type}.`
      : `Output blocked: the rule for ${type} could not keep up with the output.`;
  return new ShellfleetError('OUTPUT_BLOCKED', message, { type, reason });
}

function missingCwd(sessionId: string, cwd: string) {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `The directory ${cwd} does not exist in session ${sessionId}, or its user may not enter it, so nothing was run. Create it, or give another cwd.`,
    { issues: [{ path: 'cwd', message: 'no such directory in the sandbox' }] },
  ).toJSON();
}

/** `begun-before`: an earlier start of it is known, and nothing else, because Redis lost the rest. Such a Result has no reason. */
export type LossReason = 'host-lost' | 'container-removed' | 'begun-before';

/** The Result of an entry that started and whose end is not known. */
export function toLostResult(base: ResultBase, reason: LossReason): WireResult {
  const { shell, timings, hostId } = base;
  return emptyResult('lost', { ...(reason !== 'begun-before' && { reason }), shell, timings, hostId });
}
