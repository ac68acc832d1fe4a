import { constants } from 'node:os';
import type { Entry } from '@shellfleet/mailbox';
import {
  type BlockedOutput,
  type CommandPayload,
  type ErrorResult,
  fieldsOf,
  newResult,
  type ResultEnd,
  ShellfleetError,
  type Usage,
  type WireResult,
} from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import type { CleanTexts } from '../output/clean-output.ts';
import type { SessionShell } from '../shell/session-shell.ts';
import type { ShellEnd } from '../shell/shell.ts';
import type { EntryResult } from './entry-run.ts';
import { type EntryTimes, timesOf } from './entry-times.ts';
import type { SessionContext } from './session-context.ts';

/** Fields of every Result. */
export interface ResultBase extends EntryTimes {
  sessionId: string;
  hostId: string;
  /** Digest of the container's image, if the session has one. */
  imageDigest: string | undefined;
  shell: WireResult['shell'];
  usage: Usage | undefined;
}

/**
 * Returns the fields of every Result. `end` is the end that the shell reported, if any, and `firstOutputMs` the time
 * from the start to the first output.
 */
export function resultBase(entry: Entry, session: SessionContext, end?: ShellEnd, firstOutputMs?: number): ResultBase {
  const { shell, times } = session;
  return {
    sessionId: session.owner.keys.session,
    hostId: session.owner.host,
    imageDigest: shell.image?.digest,
    shell: describeShell(shell, end),
    usage: end?.usage,
    ...timesOf(entry, times, shell.opened, { runMs: end?.runMs ?? 0, firstOutputMs }),
  };
}

/** Returns the result of an entry that ends with an error of the fleet, without output. */
export function failedEntry(entry: Entry, error: ShellfleetError, session: SessionContext): EntryResult {
  return { result: toErrorResult(error, resultBase(entry, session)), output: [] };
}

/** Returns the result of an entry that a rule or a person (`by`) denied. Redacts `reason`. */
export function deniedEntry(
  entry: Entry,
  { reason, by }: { reason: string; by?: 'approver' },
  session: SessionContext,
): EntryResult {
  const { shell: shellState, timings, receipt, hostId } = resultBase(entry, session);
  const rest = { sealedReason: sealReason(entry.id, reason, session), shell: shellState, timings, receipt, hostId };
  return { result: newResult({ outcome: 'denial', reason: by ?? 'rules' }, rest), output: [] };
}

/** Returns the result, without output, of an entry that started and whose end is not known. */
export function lostEntry(entry: Entry, reason: LossReason, session: SessionContext): EntryResult {
  return { result: toLostResult(resultBase(entry, session), reason), output: [] };
}

/** Returns the error of an entry whose shell ended before it began and could not be replaced. */
export function neverBegun({ owner }: Pick<SessionContext, 'owner'>): ShellfleetError {
  const message = `The shell of session ${owner.keys.session} ended before this command began, and no other could be opened, so nothing was run.`;
  return new ShellfleetError('SESSION_START_FAILED', message);
}

type Asked = Pick<CommandPayload, 'cwd' | 'timeoutMs' | 'noOutputTimeoutMs'>;

export function toCommandResult(end: ShellEnd, texts: CleanTexts, base: ResultBase, asked: Asked): WireResult {
  const { sessionId, shell, timings, receipt, usage, hostId, imageDigest } = base;
  const { stdout, stderr, output, truncated, totals, redactions } = texts;
  const ended = toResultEnd(end, sessionId, asked);
  const exitCode = 'exitCode' in ended ? ended.exitCode : null;
  // Almost every Result is built here, and naming its fields takes half the time of several spreads.
  const said = { stdout, stderr, output, truncated, totals, redactions };
  return {
    ...ended,
    exitCode,
    signal: end.signal,
    ...said,
    shell,
    timings,
    receipt,
    usage,
    hostId,
    imageDigest,
  } as WireResult;
}

function toResultEnd(end: ShellEnd, sessionId: string, { cwd = '', timeoutMs, noOutputTimeoutMs }: Asked): ResultEnd {
  switch (end.reason) {
    case 'wall':
      return { outcome: 'timeout', reason: end.reason, limitMs: timeoutMs };
    case 'no-output':
      return { outcome: 'timeout', reason: end.reason, limitMs: noOutputTimeoutMs };
    case 'cancelled':
      return { outcome: 'cancellation', reason: 'cancelled' };
    case 'cwd':
      return { outcome: 'error', error: missingCwd(sessionId, cwd) };
    case 'signalled':
    case 'oom':
    case 'host-memory':
      return { outcome: 'failure', exitCode: exitCodeOf(end), reason: end.reason };
    case 'syntax':
      return { outcome: 'failure', exitCode: exitCodeOf(end), reason: 'exited' };
    case 'exited': {
      const exitCode = exitCodeOf(end);
      return { outcome: exitCode === 0 ? 'success' : 'failure', exitCode, reason: 'exited' };
    }
  }
}

/** Returns 128 plus the number of the signal that ended the shell, as shells do, or the exit code. */
function exitCodeOf({ exitCode, signal }: ShellEnd): number {
  return exitCode ?? 128 + (constants.signals[(signal ?? 'SIGKILL') as NodeJS.Signals] ?? constants.signals.SIGKILL);
}

/** Returns the Result of an entry that ends with an error of the fleet, with its output so far. */
export function toErrorResult(
  error: ShellfleetError,
  { shell, timings, receipt, usage, hostId, imageDigest }: ResultBase,
  texts?: CleanTexts,
  reason?: ErrorResult['reason'],
): WireResult {
  return newResult(
    { outcome: 'error', error: error.toJSON(), ...(reason !== undefined && { reason }) },
    // Without texts nothing has run.
    { ...texts, shell, timings, receipt, usage, hostId, ...(texts !== undefined && { imageDigest }) },
  );
}

/** Turns a Result into a `cancellation`, because a cancel came at the same time as another end. */
export function toCancelled(result: WireResult, cancelReason: string): WireResult {
  const blocked = 'blocked' in result ? result.blocked : undefined;
  return withBlocked(
    newResult({ outcome: 'cancellation', reason: 'cancelled', cancelReason }, fieldsOf(result)),
    blocked,
  );
}

/** Reports that a rule withheld the output. A timeout, a cancellation, an error or a loss remains the outcome. */
export function withBlocked(result: WireResult, blocked: BlockedOutput | undefined): WireResult {
  if (blocked === undefined || result.outcome === 'denial') return result;
  if (result.outcome !== 'success' && result.outcome !== 'failure') return { ...result, blocked };
  const { exitCode, reason } = result;
  return newResult({ outcome: 'blocked', exitCode, reason, blocked }, fieldsOf(result));
}

function missingCwd(sessionId: string, cwd: string) {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `The directory ${cwd} does not exist in session ${sessionId}, or its user may not enter it, so nothing was run. Create it, or give another cwd.`,
    { issues: [{ path: 'cwd', message: 'no such directory in the sandbox' }] },
  ).toJSON();
}

/** Why the end of an entry is not known. The Result omits `begun-before`: Redis lost all else about the entry. */
export type LossReason = 'host-lost' | 'container-removed' | 'begun-before';

export function toLostResult(base: ResultBase, reason: LossReason): WireResult {
  const { shell, timings, receipt, usage, hostId, imageDigest } = base;
  return newResult(
    { outcome: 'lost', ...(reason !== 'begun-before' && { reason }) },
    { shell, timings, receipt, usage, hostId, imageDigest },
  );
}

/** Returns the `shell` field of a Result: whether its state was kept. One Result reports each loss (invariant 5). */
export function describeShell(shell: SessionShell, end?: ShellEnd): WireResult['shell'] {
  const { epoch, reportedEpoch } = shell;
  const isGone = shell.death !== undefined || (shell.sandbox === undefined && epoch > 0);
  if (isGone) return { state: 'lost', reason: shell.lossReason, epoch };
  const isFresh = epoch !== reportedEpoch && Math.max(reportedEpoch, 1) !== epoch;
  if (isFresh) return { state: 'lost', reason: end?.shell.reason ?? shell.lossReason, epoch };
  if (end === undefined) return { state: 'kept', epoch };
  const { state, reason } = end.shell;
  return state === 'kept' ? { state, epoch } : { state, reason: reason ?? 'the shell gave no reason', epoch };
}

type Sealing = Pick<SessionContext, 'sealer' | 'owner'>;

/** Redacts the reason of a question or denial, and seals it because it may quote the script. */
export function sealReason(
  entryId: string,
  reason: string,
  { redaction, ...sealing }: Sealing & Pick<SessionContext, 'redaction'>,
): string {
  return seal('reason', entryId, redaction.value(reason), sealing);
}

/** Codes of errors whose message or context quotes commands or rules of the spec, which is sealed. */
const QUOTING: readonly string[] = ['SESSION_START_FAILED', 'RULES_INVALID'];

const SEALED = 'The message is sealed with a key that this process does not have.';

/** Seals the error of a redacted Result if it quotes the spec. */
export function sealError<R extends WireResult>(entryId: string, result: R, sealing: Sealing): R {
  if (result.outcome !== 'error' || !QUOTING.includes(result.error.code)) return result;
  const sealedReason = seal('error', entryId, JSON.stringify(result.error), sealing);
  return { ...result, error: { ...result.error, message: SEALED, context: {} }, sealedReason };
}

function seal(kind: 'reason' | 'error', entryId: string, text: string, { sealer, owner }: Sealing): string {
  return sealer.seal(text, sealPlace(kind, owner.keys, entryId));
}
