import type { Entry, Fenced } from '@shellfleet/mailbox';
import { resolveSandbox } from '@shellfleet/policy';
import {
  type CommandPayload,
  type EntryPayload,
  ensureShellfleetError,
  LIMITS,
  newResult,
  type ShellfleetError,
  type TraceContext,
  toTraceVariables,
  type WireResult,
} from '@shellfleet/protocol';
import { unauthorized } from '@shellfleet/sealing';
import { noWiderSandbox } from '../admission/no-wider-sandbox.ts';
import { toBegunId } from '../journal/journal.ts';
import { networkOf } from './check-network.ts';
import type { EntryResult, EntryRun } from './entry-run.ts';
import { waitsOf } from './entry-times.ts';
import { runFileOperation } from './file-operation.ts';
import { type EntryFinished, finishEntry } from './finish-entry.ts';
import { asksForSecond, endOfFirst, openFirstAttempt, putBackForSecond, withDenial } from './first-attempt.ts';
import { noteStart } from './note-audit.ts';
import { openPayload } from './open-payload.ts';
import { OutputForgotten } from './output-store.ts';
import { deniedEntry, failedEntry, type LossReason, lostEntry, neverBegun, resultBase } from './results.ts';
import { runCommand } from './run-command.ts';
import { runOnShell, SessionLeft } from './run-on-shell.ts';
import type { SessionContext } from './session-context.ts';

/** The shell was lost during a run, and the submitter allowed another one. Nothing is stored. */
export interface ShellLost {
  type: 'shell-lost';
  /** Result of the lost run. */
  result: WireResult;
}

/** The entry is the head of its mailbox again, for a second attempt that a person is asked about. */
export interface PutBack {
  type: 'put-back';
}

/** Runs one durably started entry, and stores its Result unless it may run again. */
export async function runEntry(
  run: EntryRun,
  session: SessionContext,
): Promise<EntryFinished | Fenced | ShellLost | PutBack> {
  const ended = await execute(run, session).catch((error: unknown): Executed | undefined => {
    if (error instanceof SessionLeft) return undefined;
    return error instanceof OutputForgotten
      ? lostEntry(run.entry, 'begun-before', session)
      : failedEntry(run.entry, ensureShellfleetError(error), session);
  });
  if (ended === undefined) return { type: 'fenced' };
  if (mayRunAgain(run) && !ended.outside && isShellLost(ended.result)) {
    session.traces?.leave(ended.result.error.code);
    return { type: 'shell-lost', result: ended.result };
  }
  const { payload, result } = ended;
  if (payload !== undefined && !run.isCancelled && asksForSecond(run.entry, result, payload, session)) {
    const put = await putBackForSecond(run.entry, { ...ended, result }, session);
    if (put.type !== 'refused') {
      session.traces?.leave(result.outcome);
      return put;
    }
  }
  return finishEntry(run.entry, ended, session); // the only place where an entry that was started becomes terminal
}

const mayRunAgain = ({ entry, isCancelled }: EntryRun) =>
  entry.retry === 'idempotent' && entry.starts < LIMITS.idempotentStarts && !isCancelled;

/** Tells whether the shell was lost and another may help. A command that ran out of memory would do so again. */
const isShellLost = (result: WireResult): result is Extract<WireResult, { outcome: 'error' }> =>
  result.outcome === 'error' &&
  result.reason !== 'oom' &&
  (result.error.code === 'CONTAINER_LOST' || result.error.code === 'SHELL_UNRESPONSIVE');

/** Ends an entry whose run was lost and which cannot run again after all. */
export function finishNotAgain(entry: Entry, result: WireResult, session: SessionContext) {
  return finishEntry(entry, { result, output: [] }, session);
}

/** Ends an entry as `lost`: its shell is gone, and it may have run, so it never runs again. */
export function finishLost(entry: Entry, reason: LossReason, session: SessionContext) {
  return finishEntry(entry, lostEntry(entry, reason, session), session);
}

/** Ends an entry, or the unstarted head, of which nothing has run, with an error of the fleet. */
export async function finishFailed(
  entry: Entry,
  error: ShellfleetError,
  session: SessionContext,
): Promise<EntryFinished> {
  const first = await endOfFirst(entry, error.message, session);
  return finishEntry(entry, first ?? failedEntry(entry, error, session), session);
}

/** Ends an entry whose shell ended before it began and could not be replaced. */
export function finishNeverBegun(entry: Entry, session: SessionContext) {
  return finishFailed(entry, neverBegun(session), session);
}

/** Ends an entry that may not run. The audit has the reason. */
export function finishUnauthorized(entry: Entry, session: SessionContext) {
  return finishFailed(entry, unauthorized(), session);
}

/** Ends an entry as `timeout`: its start deadline passed while it waited. */
export function finishOverdue(entry: Entry, session: SessionContext) {
  const { shell: shellState, timings, receipt, hostId } = resultBase(entry, session);
  const rest = { shell: shellState, timings, receipt, hostId };
  const result = newResult({ outcome: 'timeout', reason: 'not-started' }, rest);
  return finishEntry(entry, { result, output: [] }, session);
}

/** Ends the unstarted head as `denial` by the rules, or by a person (`by`). Redacts `reason`. */
export async function finishDenied(entry: Entry, denial: { reason: string; by?: 'approver' }, session: SessionContext) {
  const first = await endOfFirst(entry, denial.reason, session);
  return finishEntry(entry, first ?? deniedEntry(entry, denial, session), session);
}

/** End of an entry that ran in the wider sandbox (`outside`) or, with its `payload`, in the session's own. */
interface Executed extends EntryResult {
  outside?: true;
  payload?: CommandPayload;
}

const NOBODY_TO_ASK = 'It asks to leave the sandbox, and nothing may be asked.';

async function execute(run: EntryRun, session: SessionContext): Promise<Executed> {
  let begun = run.from === 'resume';
  try {
    const { payload, trace, submittedBy } = openPayload(run.entry, session);
    session.traces?.begin(run.entry, trace, waitsOf(run.entry, session.times, session.shell.opened).parts);
    const outside = payload.type === 'command' && runsInWider(run.entry, payload, session);
    if (outside) return await executeInWider(run, withTrace(payload, trace, session), session);
    if (payload.type === 'command') networkOf(payload, session.spec);
    begun = true;
    // Done before its first byte reaches the shell.
    if (run.from === 'start') noteBegun(run, payload, { submittedBy }, session);
    const ended = await executePayload(run, withTrace(payload, trace, session), session);
    if (payload.type !== 'command') return ended;
    return { ...ended, result: withDenial(ended, payload, session), payload };
  } catch (error) {
    // The entry may still run on this shell, where the next entry must not run at the same time.
    if (begun) await session.shell.abandon();
    throw error;
  }
}

/** Sets the variables of the command that asks for its span: the span of this host, or that of the submit. */
function withTrace<P extends EntryPayload>(payload: P, trace: TraceContext | undefined, session: SessionContext): P {
  if (payload.type !== 'command' || payload.traceparent !== true) return payload;
  const of = session.traces?.running ?? trace;
  return of === undefined ? payload : { ...payload, env: { ...payload.env, ...toTraceVariables(of) } };
}

function noteBegun(
  { entry }: EntryRun,
  payload: EntryPayload,
  how: Parameters<typeof noteStart>[2],
  session: SessionContext,
): void {
  session.journal.record(toBegunId(entry, session.owner.keys), session.generation);
  noteStart(entry, payload, how, session);
}

/** Runs a command outside its sandbox. Only the admission can allow that, so a session needs one. */
async function executeInWider(run: EntryRun, payload: CommandPayload, session: SessionContext): Promise<Executed> {
  const { entry } = run;
  const { wider, owner } = session;
  if (wider.refusal !== undefined) throw noWiderSandbox(wider.refusal);
  if ((owner.admission ?? '') === '') return deniedEntry(entry, { reason: NOBODY_TO_ASK }, session);
  noteBegun(run, payload, { outside: true }, session);
  const ended = await wider.run(run, payload, session);
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

/** Returns whether an entry would run in the wider sandbox, as second attempts and commands that ask to leave do. */
function runsInWider(
  { first }: Pick<Entry, 'first'>,
  payload: EntryPayload,
  { spec }: Pick<SessionContext, 'spec'>,
): boolean {
  if (payload.type !== 'command') return false;
  return first !== undefined || (payload.escalate !== undefined && resolveSandbox(spec).sandboxed);
}

/** Returns whether a running entry is in the wider sandbox, so that the session's own shell never began it. */
export function ranInWider(entry: Entry, session: SessionContext): boolean {
  if (entry.first !== undefined) return true;
  try {
    return runsInWider(entry, openPayload(entry, session).payload, session);
  } catch {
    // The entry ends with this error in the step that runs it.
    return false;
  }
}

async function runRestart(run: EntryRun, session: SessionContext): Promise<EntryResult> {
  const { entry } = run;
  const { shell } = session;
  const { terminationTimeoutMs } = session.spec;
  const start = { type: 'restart', entryId: entry.id, terminationTimeoutMs } as const;
  const end = await runOnShell(start, run, session, {
    onOutput: (stream, offset, bytes) => shell.live?.ack(entry.id, stream, offset + bytes.byteLength),
    received: () => ({ stdout: 0, stderr: 0 }),
  });
  // The next entry gets a fresh shell, as requested, however the old one ended.
  if (end.type !== 'ended') await shell.abandon();
  const base = resultBase(entry, session, end.type === 'ended' ? end.end : undefined);
  const fresh = { ...base.shell, state: 'lost', reason: 'restarted' } as const;
  const { timings, receipt, usage, hostId } = base;
  const rest = { shell: fresh, timings, receipt, usage, hostId };
  const result = newResult({ outcome: 'success', exitCode: 0, reason: 'exited' }, rest);
  return { result, output: [] };
}
