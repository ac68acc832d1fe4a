import type { Entry, Fenced } from '@shellfleet/mailbox';
import {
  type CommandPayload,
  type EntryPayload,
  ensureShellfleetError,
  LIMITS,
  newResult,
  type ShellfleetError,
  type WireResult,
} from '@shellfleet/protocol';
import { unauthorized } from '@shellfleet/sealing';
import { noWiderSandbox } from '../admission/no-wider-sandbox.ts';
import { toBegunId } from './begun-id.ts';
import { networkOf } from './check-network.ts';
import type { EntryResult, EntryRun } from './entry-run.ts';
import { runFileOperation } from './file-operation.ts';
import { type EntryFinished, finishEntry } from './finish-entry.ts';
import { asksForSecond, endOfFirst, openFirstAttempt, putBackForSecond, withDenial } from './first-attempt.ts';
import { noteStart } from './note-audit.ts';
import { openPayload } from './open-payload.ts';
import { OutputForgotten } from './output-store.ts';
import { deniedEntry, failedEntry, type LossReason, lostEntry, neverBegun, resultBase } from './results.ts';
import { runCommand } from './run-command.ts';
import { runRestart } from './run-restart.ts';
import { runsOutside } from './runs-outside.ts';
import type { SessionContext } from './session-context.ts';

/** Its shell was lost while it ran, and its submitter allowed another run. Nothing is stored. */
export interface ShellLost {
  type: 'shell-lost';
  /** of the run that was lost */
  result: WireResult;
}

/**
 * Its sandbox has denied it something: it is the head of its mailbox again, for a second attempt that a person is asked
 * about.
 */
export interface PutBack {
  type: 'put-back';
}

/** Runs one entry of the mailbox that is durably started, and stores its Result unless it may run again. */
export async function runEntry(
  run: EntryRun,
  session: SessionContext,
): Promise<EntryFinished | Fenced | ShellLost | PutBack> {
  const ended: Executed = await execute(run, session).catch((error: unknown) =>
    error instanceof OutputForgotten
      ? lostEntry(run.entry, 'begun-before', session)
      : failedEntry(run.entry, ensureShellfleetError(error), session),
  );
  if (mayRunAgain(run) && !ended.outside && isShellLost(ended.result))
    return { type: 'shell-lost', result: ended.result };
  const { payload, result } = ended;
  if (payload !== undefined && !run.isCancelled && asksForSecond(run.entry, result, payload, session)) {
    const put = await putBackForSecond(run.entry, { ...ended, result }, session);
    if (put.type !== 'refused') return put;
  }
  return finishEntry(run.entry, ended, session); // the only place where an entry that was started becomes terminal
}

const mayRunAgain = ({ entry, isCancelled }: EntryRun) =>
  entry.retry === 'idempotent' && entry.starts < LIMITS.idempotentStarts && !isCancelled;

/** A command that runs out of memory would do so again. */
const isShellLost = (result: WireResult) =>
  result.outcome === 'error' &&
  result.reason !== 'oom' &&
  (result.error.code === 'CONTAINER_LOST' || result.error.code === 'SHELL_UNRESPONSIVE');

/** Ends an entry whose run was lost, when it cannot run again after all. */
export function finishNotAgain(entry: Entry, result: WireResult, session: SessionContext) {
  return finishEntry(entry, { result, output: [] }, session);
}

/** Ends an entry as `lost`: its shell is gone, and whether it ran is not known, so it is never run again. */
export function finishLost(entry: Entry, reason: LossReason, session: SessionContext) {
  return finishEntry(entry, lostEntry(entry, reason, session), session);
}

/** Ends an entry of which nothing has run with an error of the fleet. Also for the head of the mailbox, unstarted. */
export async function finishFailed(
  entry: Entry,
  error: ShellfleetError,
  session: SessionContext,
): Promise<EntryFinished> {
  const first = await endOfFirst(entry, error.message, session);
  return finishEntry(entry, first ?? failedEntry(entry, error, session), session);
}

/** Ends an entry whose shell ended before it began, and for which no other shell could be opened. */
export function finishNeverBegun(entry: Entry, session: SessionContext) {
  return finishFailed(entry, neverBegun(session), session);
}

/** Ends an entry that may not run: why is in the audit. */
export function finishUnauthorized(entry: Entry, session: SessionContext) {
  return finishFailed(entry, unauthorized(), session);
}

/** Ends an entry as `timeout`: its start deadline passed while it waited. */
export function finishOverdue(entry: Entry, session: SessionContext) {
  const { shell: shellState, timings, hostId } = resultBase(entry, session);
  const result = newResult({ outcome: 'timeout', reason: 'not-started' }, { shell: shellState, timings, hostId });
  return finishEntry(entry, { result, output: [] }, session);
}

/**
 * Ends the unstarted head of the mailbox as `denial`. `reason` is redacted before it is stored. `by`: who denied it, if
 * the rules did not.
 */
export async function finishDenied(entry: Entry, denial: { reason: string; by?: 'approver' }, session: SessionContext) {
  const first = await endOfFirst(entry, denial.reason, session);
  return finishEntry(entry, first ?? deniedEntry(entry, denial, session), session);
}

/** The end of an entry that ran in the wider sandbox (`outside`) or, with its `payload`, in the session's own. */
interface Executed extends EntryResult {
  outside?: true;
  payload?: CommandPayload;
}

const NOBODY_TO_ASK = 'It asks to leave the sandbox, and nothing may be asked.';

async function execute(run: EntryRun, session: SessionContext): Promise<Executed> {
  let begun = run.from === 'resume';
  try {
    const payload = openPayload(run.entry, session);
    const outside = payload.type === 'command' && runsOutside(run.entry, payload, session);
    if (outside) return await executeOutside(run, payload, session);
    if (payload.type === 'command') networkOf(payload, session.spec);
    begun = true;
    // Before its first byte reaches the shell.
    if (run.from === 'start') noteBegun(run, payload, false, session);
    const ended = await executePayload(run, payload, session);
    if (payload.type !== 'command') return ended;
    return { ...ended, result: withDenial(ended, payload, session), payload };
  } catch (error) {
    // It may still run on this shell, and the next entry must not run beside it.
    if (begun) await session.shell.abandon();
    throw error;
  }
}

function noteBegun({ entry }: EntryRun, payload: EntryPayload, outside: boolean, session: SessionContext): void {
  session.journal.record(toBegunId(entry, session.owner.keys), session.generation);
  noteStart(entry, payload, outside, session);
}

/** What leaves its sandbox was admitted for that: in a session whose entries nobody judges, nothing is. */
async function executeOutside(run: EntryRun, payload: CommandPayload, session: SessionContext): Promise<Executed> {
  const { entry } = run;
  const { outside, owner } = session;
  if (outside.refusal !== undefined) throw noWiderSandbox(outside.refusal);
  if ((owner.admission ?? '') === '') return deniedEntry(entry, { reason: NOBODY_TO_ASK }, session);
  noteBegun(run, payload, true, session);
  const ended = await outside.run(run, payload, session);
  const firstAttempt = entry.first === undefined ? {} : { firstAttempt: openFirstAttempt(entry, entry.first, session) };
  return { ...ended, outside: true, result: { ...ended.result, outside: true, ...firstAttempt } };
}

function executePayload(run: EntryRun, payload: EntryPayload, session: SessionContext) {
  switch (payload.type) {
    case 'command':
      return runCommand(run, payload, session);
    case 'file':
      return runFileOperation(run, payload.operation, session);
    case 'restart':
      return runRestart(run, session);
  }
}
