import { type FileOperation, ShellfleetError } from '@shellfleet/protocol';
import type { AdmissionQuestion, SessionAdmission } from '../admission/admission.ts';
import type { SessionContext } from '../run/session-context.ts';

/**
 * ADMIT-1 for a file operation beside the mailbox. Throws FILE_DENIED unless the host's rules admit it, and AUDIT_UNAVAILABLE when that cannot
 * be written down: outside of the mailbox nothing can be held until somebody answers.
 */
export async function admitFile(
  operation: FileOperation,
  admission: SessionAdmission,
  about: Omit<AdmissionQuestion, 'opens' | 'payload' | 'attempt'>,
  { audit, redaction }: Pick<SessionContext, 'audit' | 'redaction'>,
): Promise<void> {
  if (admission.digest === '') return;
  const verdict = await admission.judge({
    ...about,
    opens: false,
    payload: { type: 'file', operation },
    attempt: { number: 1 },
  });
  if (verdict.type === 'admit') return;
  const isHeld = verdict.type === 'hold';
  const how = isHeld ? 'needs an approval; ask for it with { ordered: true }' : 'is denied';
  const reason = isHeld ? verdict.question.reason : verdict.reason;
  const { tenant, session, generation, entryId: entry } = about;
  // ADMIT-7
  await audit.record(tenant, {
    ...{ type: 'decision', session, generation, entry, decision: 'deny', digest: admission.digest },
    reason: redaction.text(reason),
  });
  throw new ShellfleetError('FILE_DENIED', `The ${operation.name} of ${operation.path} ${how}: ${reason}`, {
    path: operation.path,
    operation: operation.name,
  });
}
