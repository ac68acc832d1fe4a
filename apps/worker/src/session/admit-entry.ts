import type { Entry } from '@shellfleet/mailbox';
import { ATTRIBUTES, ensureShellfleetError, toCommandId } from '@shellfleet/protocol';
import type { AdmissionInput, ApprovalQuestion, Verdict } from '../admission/admission.ts';
import { openFirstAttempt } from '../run/first-attempt.ts';
import { openPayload } from '../run/open-payload.ts';
import { sealReason } from '../run/results.ts';
import { finishDenied, finishFailed } from '../run/run-entry.ts';
import { auditVerdict, noteHeld } from './audit-verdict.ts';
import { directoryOf } from './directory-of.ts';
import { aboutSession, type SessionParts } from './session-parts.ts';
import { LOOK, type Step, toStep, toStepAfter } from './step.ts';

// The step between the head of the mailbox and its start.
// ADMIT-1. An entry reaches the shell only when the session's admission admits it, and that is stored before it is
//          started (`clear`).
// ADMIT-2. If the session's digest is empty, everything is admitted: the mailbox starts its entries without this step.
// ADMIT-3. A worker that dies within the step leaves the head unchanged, held, started, or ended. The next worker
//          decides about it only if it is unchanged.
// ADMIT-4. An entry that cannot be decided about is not started: it ends with the error.
// ADMIT-5. A verdict holds under the digest of its request. If the rules change before the reply, it is decided again.
// ADMIT-6. An entry starts on a verdict that was requested when its shell was ready.
// ADMIT-7. A denial is in the audit before it takes effect.
// ADMIT-8. Where entries are decided about, the shell receives only what this process has admitted (AdmittedEntry). An
//          entry that Redis has as started and this process did not admit is decided again before its first byte
//          (start-entry.ts).

/** Decides about the unstarted head, and starts, holds or ends it. `opened` means that the shell was opened for it. */
export async function admitEntry(entry: Entry, opened: boolean, parts: SessionParts): Promise<Step> {
  const { context, shell, admission } = parts;
  const { digest } = admission;
  if (opened && shell.ready) admission.opened();
  const opens = opened || !shell.ready;
  const decideNow = () => decideEntry(entry, opens, parts).catch(ensureShellfleetError);
  // Decides first, because no shell is opened for an entry that would not start.
  const early = shell.ready ? undefined : await decideNow();
  if (early !== undefined && !(early instanceof Error) && early.type === 'admit')
    return { type: 'open', next: { type: 'decide', entry, opened: true }, entry };
  return context.approvals.starts.during({ ...aboutSession(parts), entryId: entry.id }, async (): Promise<Step> => {
    const decided = early ?? (await decideNow());
    if (digest !== admission.digest) return LOOK;
    const verdict = await auditVerdict(decided, entry, digest, parts);
    if (verdict instanceof Error) return toStepAfter(await finishFailed(entry, verdict, context));
    switch (verdict.type) {
      case 'admit':
        return shell.ready ? start(entry, digest, verdict.startBy, parts) : LOOK;
      case 'hold':
        return holdUntilAnswered(entry, digest, inputOf(entry, opens, parts), verdict.question, parts);
      case 'deny':
        return toStepAfter(await finishDenied(entry, verdict, context));
    }
  });
}

export async function decideEntry(entry: Entry, opens: boolean, parts: SessionParts): Promise<Verdict> {
  return parts.admission.decide(inputOf(entry, opens, parts));
}

/** Returns the question about an entry. `opens` stays true after the opening, so that the question stays the same. */
function inputOf(entry: Entry, opens: boolean, parts: SessionParts): AdmissionInput {
  const { context } = parts;
  const { payload, signature, submittedBy } = openPayload(entry, context);
  const { id: entryId, first } = entry;
  const attempt =
    first === undefined ? { number: 1 as const } : { number: 2 as const, ...openFirstAttempt(entry, first, context) };
  const directory =
    payload.type === 'command' ? () => directoryOf(payload, opens, context.spec, parts.shell) : undefined;
  return { ...aboutSession(parts), entryId, opens, payload, signature, submittedBy, attempt, directory };
}

async function start(entry: Entry, digest: string, startBy: number | undefined, parts: SessionParts): Promise<Step> {
  // Starts the entry, unless the lease has ended while the shell was opened.
  const mayStart = () => parts.lease.held() && digest === parts.admission.digest;
  // Set before the call: if its reply is lost, the entry is later found as started (ADMIT-8).
  parts.admitted.set(entry, digest);
  const cleared = await parts.context.mailbox.retry(async (once) =>
    mayStart() ? once.clear(entry.id, digest, startBy) : undefined,
  );
  if (cleared?.type !== 'started' && cleared?.type !== 'running') parts.admitted.clear();
  if (cleared === undefined || cleared.type === 'not-head') return LOOK;
  return cleared.type === 'too-late' ? { type: 'decide', entry, opened: false } : toStep(cleared, LOOK);
}

/** Adds the question before it holds the entry. So a held entry has a question, or is decided again. */
async function holdUntilAnswered(
  entry: Entry,
  digest: string,
  input: AdmissionInput,
  asked: ApprovalQuestion,
  parts: SessionParts,
): Promise<Step> {
  const { context } = parts;
  const { approvals, mailbox } = context;
  const added = await approvals.ask(input, asked, context.redaction);
  switch (added.type) {
    case 'answered':
      return { type: 'decide', entry, opened: false };
    case 'refused': {
      const denial = await auditVerdict({ type: 'deny', reason: added.reason }, entry, digest, parts);
      if (denial instanceof Error) return toStepAfter(await finishFailed(entry, denial, context));
      return toStepAfter(await finishDenied(entry, added, context));
    }
    case 'failed':
      return toStepAfter(await finishFailed(entry, added.error, context));
    case 'pending': {
      noteHeld(entry, added.data, asked.outside, digest, parts);
      const { id, reason, expiresAt } = added.data;
      context.traces?.asked(entry.id, id);
      const request = { id, sealedReason: sealReason(entry.id, reason, context), expiresAt };
      const held = await mailbox.hold(entry.id, digest, request);
      context.logger.info(
        { [ATTRIBUTES.commandId]: toCommandId(mailbox.owner.keys.session, entry.id) },
        'command.held',
      );
      if (held.type === 'held') await approvals.held(input);
      return LOOK;
    }
  }
}
