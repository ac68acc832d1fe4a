import type { Entry } from '@shellfleet/mailbox';
import { ensureShellfleetError, type ShellfleetError } from '@shellfleet/protocol';
import type { Verdict } from '../admission/admission.ts';
import { aboutOf, noteSubmission } from '../run/note-audit.ts';
import { openPayload } from '../run/open-payload.ts';
import type { SessionParts } from './session-parts.ts';

/** Records a verdict before it takes effect. Returns AUDIT_UNAVAILABLE instead of a denial that cannot be recorded. */
export async function auditVerdict(
  verdict: Verdict | ShellfleetError,
  entry: Entry,
  digest: string,
  { context }: Pick<SessionParts, 'context'>,
): Promise<Verdict | ShellfleetError> {
  if (verdict instanceof Error) return verdict;
  const { audit, redaction, owner } = context;
  const { tenant } = owner.keys;
  const { payload, signature, submittedBy } = openPayload(entry, context);
  if (entry.first === undefined) noteSubmission(entry, payload, { submittedBy, producer: signature?.signer }, context);
  // A hold is recorded later, with the id of its question.
  if (verdict.type === 'hold') return verdict;
  const about = aboutOf(entry, context);
  if (verdict.type === 'admit') {
    const outside = verdict.outside && { outside: verdict.outside };
    audit.note(tenant, () => ({ type: 'decision', ...about, decision: 'admit', digest, ...outside }));
    return verdict;
  }
  const { reason, by } = verdict;
  const denial = { type: 'decision', ...about, decision: 'deny', digest, reason: redaction.text(reason) } as const;
  try {
    await audit.record(tenant, { ...denial, ...(by === undefined ? {} : { by }) });
    return verdict;
  } catch (error) {
    return ensureShellfleetError(error);
  }
}

/** Records a hold. `reason` is redacted. */
export function noteHeld(
  entry: Entry,
  { id: question, reason }: { id: string; reason: string },
  outside: true | undefined,
  digest: string,
  { context }: Pick<SessionParts, 'context'>,
): void {
  const about = aboutOf(entry, context);
  context.audit.note(context.owner.keys.tenant, () => ({
    ...{ type: 'decision', ...about, decision: 'hold', digest, question, reason, ...(outside && { outside }) },
  }));
}
