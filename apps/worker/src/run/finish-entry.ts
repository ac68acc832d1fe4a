import { type Entry, type Fenced, type Finished, notify, type OwnedCalls, type Owner } from '@shellfleet/mailbox';
import {
  ATTRIBUTES,
  ensureShellfleetError,
  type StoredChunk,
  type StreamName,
  type TraceContext,
  toCommandId,
  type WireResult,
} from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import { totalOf } from '../output/redactor.ts';
import { askedToCancel } from './asked-requests.ts';
import type { EntryResult } from './entry-run.ts';
import { waitsOf } from './entry-times.ts';
import type { WaitPart } from './explain-wait.ts';
import { noteEnd } from './note-audit.ts';
import { traceOf } from './open-payload.ts';
import { pauseClocksWhileDown } from './pause-clocks.ts';
import { lostEntry, sealError, toCancelled } from './results.ts';
import type { SessionContext } from './session-context.ts';

/** Reply of the mailbox when a Result is stored. An empty `next` means an empty mailbox only if `triedNext` is true. */
export type EntryFinished = (Finished | Fenced) & { triedNext: boolean };

/** Stores the Result of an entry once, in any number of attempts. Nothing else makes an entry terminal on this host. */
export async function finishEntry(entry: Entry, ended: EntryResult, context: SessionContext): Promise<EntryFinished> {
  const { mailbox, owner, sealer, redaction, shell, hostEntries, uses, metrics, traces } = context;
  let { result, output } = ended;
  result = await auditedFirst(result, context);
  const place = sealPlace('reply', owner.keys, entry.id);
  const answer = ended.answer === undefined ? {} : { answer: sealer.seal(ended.answer, place) };
  traces?.store(entry, result, () => originOf(entry, context));
  let triedNext = false;
  let cancelReason: string | undefined;
  for (;;) {
    const call = (once: OwnedCalls) => {
      triedNext = shell.ready && context.mayTakeNext();
      if (triedNext) context.delegation.mayBeStored();
      return once.finish(entry.id, {
        result: sealError(entry.id, toStoredResult(entry, result, redaction), context),
        output,
        ...answer,
        epoch: result.shell.epoch,
        takeNext: triedNext,
        inbox: entry.inbox,
        ...(cancelReason !== undefined && { cancelReason }),
      });
    };
    const finished = await mailbox.retry(call, { availability: pauseClocksWhileDown(shell) });
    if (finished.type === 'cancelled') {
      const reason = await askedToCancel(entry.id, finished.reason, context);
      if (reason === undefined) continue;
      cancelReason = finished.reason;
      result = toCancelled(result, reason);
    } else if (finished.type === 'misplaced') {
      const unstored = unstoredOutput(output, finished.offsets);
      if (unstored !== undefined) output = unstored;
      // Redis came back without output that it had stored.
      else ({ result, output } = lostEntry(entry, 'begun-before', context));
    } else {
      if (finished.type === 'finished') {
        context.times.recordEnd(finished.event);
        if (finished.endedBefore) {
          notifyProducer(entry, finished.event, owner);
          traces?.end(result);
        } else {
          if (entry.kind === 'command') {
            shell.recordOutcome(result.outcome);
            hostEntries.endedCommands.record();
          }
          uses.addOutput(owner.keys.tenant, result.totals.stdoutBytes + result.totals.stderrBytes);
          metrics?.entryEnded(entry.kind, result);
          if (result.reason === 'host-memory') context.onHostMemory();
          const described = describe(entry, result, context);
          traces?.end(result, described);
          if (ended.noted !== true) noteEnd(entry, result, context);
        }
      }
      traces?.leave('LEASE_LOST');
      return { ...finished, triedNext };
    }
  }
}

/** Redacts a Result: paths, scripts and messages of the shell may hold secrets, as output does. */
export function toStoredResult<R extends WireResult>(
  { starts }: Pick<Entry, 'starts'>,
  result: R,
  redaction: Pick<SessionContext['redaction'], 'value'>,
): R {
  const texts = textsOf(result);
  if (starts <= 1 && texts === undefined) return result;
  return { ...result, ...(starts > 1 && { attempts: starts }), ...(texts && redaction.value(texts)) };
}

/** Records a refused signature in the audit before the Result is stored, or ends the entry with AUDIT_UNAVAILABLE. */
function auditedFirst(result: WireResult, { audit, owner }: SessionContext): WireResult | Promise<WireResult> {
  if (result.outcome !== 'error' || result.error.code !== 'UNAUTHORIZED') return result;
  return audit.recorded(owner.keys.tenant).then(
    () => result,
    (error: unknown) => ({ ...result, error: ensureShellfleetError(error).toJSON() }),
  );
}

/** Returns the texts of a Result besides its output. Undefined when there are none. */
function textsOf(result: WireResult) {
  const { outcome, shell, refused } = result;
  const isPlain = shell.reason === undefined && refused === undefined;
  if (isPlain && outcome !== 'error' && outcome !== 'cancellation') return undefined;
  const texts = { shell, ...(refused !== undefined && { refused }) };
  if (result.outcome === 'error') return { ...texts, error: result.error };
  if (result.outcome !== 'cancellation' || result.cancelReason === undefined) return texts;
  return { ...texts, cancelReason: result.cancelReason };
}

/** Notifies the producer, as the finish may have sent no notice. Not awaited, since the Result is in the stream. */
function notifyProducer(entry: Entry, event: string, { redis, keys }: Owner): void {
  const { namespace, tenant, session } = keys;
  void notify(redis, namespace, entry.inbox, { tenant, session, entryId: entry.id, event, result: '' }).catch(() => {});
}

/** Returns the span that submitted an entry whose spans have not begun, and what the entry waited for. */
function originOf(entry: Entry, context: SessionContext): [TraceContext | undefined, WaitPart[]] {
  return [traceOf(entry, context), waitsOf(entry, context.times, context.shell.opened).parts];
}

/** Logs one line with all fields for each entry, and returns them for its span. None is its script or its output. */
function describe(
  entry: Entry,
  result: WireResult,
  { owner, logger, traces }: SessionContext,
): Record<string, string | number> | undefined {
  const level = result.outcome === 'error' ? 'warn' : 'debug';
  if (traces === undefined && !logger.isLevelEnabled(level)) return undefined;
  const attributes = {
    [ATTRIBUTES.sessionId]: owner.keys.session,
    [ATTRIBUTES.commandId]: toCommandId(owner.keys.session, entry.id),
    [ATTRIBUTES.outcome]: result.outcome,
    [ATTRIBUTES.fence]: owner.fence,
    [ATTRIBUTES.hostId]: owner.host,
    [ATTRIBUTES.outputBytes]: result.totals.stdoutBytes + result.totals.stderrBytes,
    [ATTRIBUTES.outputRedactions]: totalOf(result.redactions),
    ...(result.exitCode === null ? {} : { [ATTRIBUTES.exitCode]: result.exitCode }),
    ...(result.outcome === 'error' ? { [ATTRIBUTES.errorType]: result.error.code } : {}),
  };
  logger[level]({ ...attributes, timings: result.timings }, 'command.completed');
  return attributes;
}

/** Returns the pieces that Redis lacks after an append without a reply. Undefined if it has none of them. */
export function unstoredOutput(
  output: readonly StoredChunk[],
  offsets: Readonly<Record<StreamName, number>>,
): StoredChunk[] | undefined {
  const unstored = output.filter(({ stream, rawFrom }) => rawFrom >= offsets[stream]);
  return unstored.length < output.length ? unstored : undefined;
}
