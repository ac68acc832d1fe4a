import type { Entry, Fenced } from '@shellfleet/mailbox';
import { asksAfterDenial, resolveSandbox, rulingFor, sandboxDenial } from '@shellfleet/policy';
import {
  type CommandPayload,
  type FirstAttempt,
  firstAttemptSchema,
  parseOrThrow,
  type WireResult,
} from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import { networkOf } from './check-network.ts';
import type { EntryResult } from './entry-run.ts';
import { askedMs } from './entry-times.ts';
import { toStoredResult, unstoredOutput } from './finish-entry.ts';
import { noteEnd } from './note-audit.ts';
import { sealReason } from './results.ts';
import type { SessionContext } from './session-context.ts';

// A command that its sandbox denied something may be attempted again outside of it, if a person approves.
// ATTEMPT-1. An attempt never runs twice. The first one is over before the second is asked about, and both have
//            separate begun ids.
// ATTEMPT-2. Only a person starts a second attempt, after seeing how the first one ended.
// ATTEMPT-3. Without a second attempt the entry ends as its first attempt did, with its output.
// ATTEMPT-4. There is no third attempt.

/** Maximum of the output that a person is shown, in bytes. */
const SHOWN_BYTES = 500;

type Failure = Extract<WireResult, { outcome: 'failure' }>;

/** Adds to a failure what the sandbox seems to have denied. */
export function withDenial(
  { result, lastOutput }: Pick<EntryResult, 'result' | 'lastOutput'>,
  payload: CommandPayload,
  session: SessionContext,
): WireResult {
  if (result.outcome !== 'failure' || result.reason !== 'exited') return result;
  const { spec } = session;
  const sandbox = { ...resolveSandbox(spec), network: networkOf(payload, spec) };
  const { exitCode } = result;
  const denial = sandboxDenial({ exitCode, output: lastOutput?.() ?? '', sandbox });
  if (denial === undefined) return result;
  const mayAsk = mayLeave(session) && rulingFor('escalation', spec.approval) === 'ask';
  return { ...result, denied: { what: denial.denied, line: denial.line, mayAsk } };
}

/** Returns whether to ask a person about a second attempt. */
export function asksForSecond(
  entry: Entry,
  result: WireResult,
  payload: CommandPayload,
  session: SessionContext,
): result is Failure {
  if (result.outcome !== 'failure' || result.denied === undefined || entry.first !== undefined) return false;
  const { spec, owner } = session;
  return (
    payload.input === undefined &&
    spec.sandbox?.escalateOnFailure !== false &&
    asksAfterDenial(spec.approval) &&
    (owner.admission ?? '') !== '' &&
    mayLeave(session)
  );
}

const mayLeave = ({ spec, wider }: SessionContext) =>
  wider.refusal === undefined && spec.sandbox?.selection !== 'require';

/** Ends the first attempt, and puts the entry back as head. `refused` if it was cancelled or its generation ends. */
export async function putBackForSecond(
  entry: Entry,
  { result, output, lastOutput }: EntryResult & { result: Failure },
  session: SessionContext,
): Promise<{ type: 'put-back' } | { type: 'refused' } | Fenced> {
  const { mailbox, owner, sealer, redaction } = session;
  const { exitCode } = result;
  const shown: FirstAttempt = { exitCode, output: endOf(lastOutput?.() ?? '', SHOWN_BYTES) };
  const sealed = sealer.seal(JSON.stringify(shown), sealPlace('first-attempt', owner.keys, entry.id));
  const stored = toStoredResult(entry, result, redaction) as Failure;
  let rest = output;
  for (;;) {
    const put = await mailbox.putBack(entry.id, { sealed, result: stored, output: rest });
    if (put.type !== 'misplaced') {
      if (put.type === 'put-back') noteEnd(entry, result, session);
      return put;
    }
    const unstored = unstoredOutput(rest, put.offsets);
    if (unstored === undefined) return { type: 'refused' };
    rest = unstored;
  }
}

/** Opens what a person is shown of the first attempt. Throws SEAL_KEY_UNKNOWN, or INTERNAL if no host sealed it. */
export function openFirstAttempt({ id }: Entry, first: string, { owner, sealer }: SessionContext): FirstAttempt {
  const text = sealer.open(first, sealPlace('first-attempt', owner.keys, id));
  return parseOrThrow(firstAttemptSchema, JSON.parse(text), 'INTERNAL', `The first attempt of ${id}`);
}

/** Returns the end of an entry without a second attempt (ATTEMPT-3). Undefined when it had no first one. */
export async function endOfFirst(
  entry: Entry,
  refused: string,
  session: Pick<SessionContext, 'mailbox' | 'owner' | 'sealer' | 'redaction' | 'times'>,
): Promise<EntryResult | undefined> {
  const { id, first } = entry;
  if (first === undefined) return undefined;
  const result = await session.mailbox.readFirstResult(id, '');
  if (result === undefined) return undefined;
  const receipt = result.receipt && { ...result.receipt, askedMs: askedMs(entry, session.times) };
  const sealedReason = sealReason(id, refused, session);
  return { result: { ...result, receipt, sealedReason }, output: [], noted: true };
}

/** Returns the end of a text in whole characters. */
function endOf(text: string, mostBytes: number): string {
  const bytes = Buffer.from(text);
  let from = Math.max(0, bytes.length - mostBytes);
  while (from > 0 && ((bytes[from] ?? 0) & 0b1100_0000) === 0b1000_0000) from += 1;
  return bytes.subarray(from).toString();
}
