import type { Entry } from '@shellfleet/mailbox';
import { ATTRIBUTES, ensureShellfleetError, type ShellfleetError, toCommandId } from '@shellfleet/protocol';
import { unauthorized } from '@shellfleet/sealing';
import type { Verdict } from '../admission/admission.ts';
import { finishDenied, finishFailed } from '../run/run-entry.ts';
import { decideEntry } from './admit-entry.ts';
import { auditVerdict } from './audit-verdict.ts';
import { aboutSession, type SessionParts } from './session-parts.ts';
import type { EndUnrun } from './step.ts';

/**
 * Decides about an entry that counts as started in Redis and that this process has not admitted (ADMIT-8): the worker was
 * started again after it had cleared it, its shell was replaced, or somebody has changed the records. Returns how it
 * ends, or undefined when it may run.
 */
export function decideStarted(entry: Entry, parts: SessionParts): Promise<EndUnrun | undefined> | undefined {
  const { digest } = parts.admission;
  return digest === '' || parts.admitted.is(entry, digest) ? undefined : decideAgain(entry, digest, parts);
}

async function decideAgain(entry: Entry, digest: string, parts: SessionParts): Promise<EndUnrun | undefined> {
  const { admitted, context } = parts;
  const { owner, logger } = context;
  logger.info({ [ATTRIBUTES.commandId]: toCommandId(owner.keys.session, entry.id) }, 'command.decided-again');
  let unanswered = false;
  const verdict = await context.approvals.starts.during({ ...aboutSession(parts), entryId: entry.id }, async () => {
    const decided = await decideAsAsked(entry, parts).catch(ensureShellfleetError);
    unanswered = !(decided instanceof Error) && decided.type === 'hold';
    return auditVerdict(withoutAsking(decided), entry, digest, parts);
  });
  if (verdict instanceof Error) return failing(verdict);
  if (verdict.type === 'deny') {
    // Only an answer that no approver has signed can have started it.
    if (unanswered && context.sealer.verifies) return failing(unauthorized());
    return (refused, ...of) => finishDenied(refused, verdict, ...of);
  }
  admitted.set(entry, digest);
  return undefined;
}

/**
 * Whether an entry may run on another shell than the one that is gone. What was admitted for that shell is decided
 * again.
 */
export async function mayRunAgain(entry: Entry, parts: SessionParts): Promise<boolean> {
  parts.admitted.clear();
  return (await decideStarted(entry, parts)) === undefined;
}

/** The question may have been about the commands that opened its shell as well. */
async function decideAsAsked(entry: Entry, parts: SessionParts): Promise<Verdict> {
  const verdict = await decideEntry(entry, !parts.shell.ready, parts);
  return verdict.type === 'hold' && parts.shell.ready ? decideEntry(entry, true, parts) : verdict;
}

/** Nothing can be asked about an entry that counts as started. */
function withoutAsking(verdict: Verdict | ShellfleetError): Exclude<Verdict, { type: 'hold' }> | ShellfleetError {
  if (verdict instanceof Error || verdict.type !== 'hold') return verdict;
  return { type: 'deny', reason: `${verdict.question.reason} No answer allows it.` };
}

const failing =
  (error: ShellfleetError): EndUnrun =>
  (entry, ...of) =>
    finishFailed(entry, error, ...of);
