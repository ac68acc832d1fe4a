import type { Entry } from '@shellfleet/mailbox';
import { emptyResult, type Outcome, type Reason, ShellfleetError, type WireResult } from '@shellfleet/protocol';
import type { CleanTexts } from '../output/clean-output.ts';
import type { Blocked } from '../output/redactor.ts';
import type { ShellEnd } from '../shell/shell.ts';

/** What every result of this host carries. */
export interface ResultFrame {
  sessionId: string;
  hostId: string;
  shell: WireResult['shell'];
  timings: WireResult['timings'];
}

/** When an entry waited, and for what. Clocks of Redis and host are both meant to be right; what is not is never negative. */
export function toTimings(entry: Entry, openedFrom: number, openedTo: number, runMs: number): WireResult['timings'] {
  const waited = Math.max(0, entry.startedAt - entry.acceptedAt);
  const startMs = Math.min(waited, Math.max(0, openedTo - Math.max(entry.acceptedAt, openedFrom)));
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
export function toCommandResult(end: ShellEnd, texts: CleanTexts, frame: ResultFrame, cwd?: string): WireResult {
  const { outcome, reason } = OUTCOMES[end.reason];
  // What a shell that we stopped answers is our doing, not the command's.
  const exitCode = outcome === 'timeout' || outcome === 'cancellation' ? null : end.exitCode;
  return {
    ...emptyResult(outcome === 'by-exit-code' ? (exitCode === 0 ? 'success' : 'failure') : outcome),
    exitCode,
    signal: end.signal,
    ...(end.reason === 'cwd' ? { error: missingCwd(frame.sessionId, cwd ?? '') } : { reason }),
    ...texts,
    shell: frame.shell,
    timings: frame.timings,
    hostId: frame.hostId,
  };
}

/** The Result of an entry that we failed. What its output was so far is kept. */
export function toErrorResult(
  error: ShellfleetError,
  frame: ResultFrame,
  texts?: CleanTexts,
  reason?: Reason,
): WireResult {
  return {
    ...emptyResult('error'),
    ...texts,
    ...(reason === undefined ? {} : { reason }),
    error: error.toJSON(),
    shell: frame.shell,
    timings: frame.timings,
    hostId: frame.hostId,
  };
}

/** A rule withheld the output. How a command that we stopped, or lost, came out stays what is said first. */
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

/** The Result of an entry that started, and whose end nobody saw. */
export function toLostResult(frame: ResultFrame): WireResult {
  const { shell, timings, hostId } = frame;
  return emptyResult('lost', { reason: 'host-lost', shell, timings, hostId });
}
