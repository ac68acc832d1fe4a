import type { Entry } from '@shellfleet/mailbox';
import type { AuditEvent, EntryPayload, FileOperation, ShellfleetError, WireResult } from '@shellfleet/protocol';
import { type AuditedEntry, endEvent, type Submitter, submissionEvent } from '../audit/session-events.ts';
import type { SessionContext } from './session-context.ts';

// Notes what happens to entries in the audit, without waiting for a disk.

/** The last noted entry of each session. Deciding about it again does not note it twice. */
const submitted = new WeakMap<SessionContext, string>();

/** Notes an entry before it starts. */
export function noteSubmission(
  entry: Entry,
  payload: EntryPayload,
  submitter: Submitter,
  session: SessionContext,
): void {
  if (submitted.get(session) === entry.id) return;
  submitted.set(session, entry.id);
  const { audit, spec, redaction } = session;
  const about = aboutOf(entry, session);
  audit.note(session.owner.keys.tenant, () => submissionEvent(about, entry, payload, spec, redaction, submitter));
}

/** Notes the start of an entry, before its first byte reaches the shell. */
export function noteStart(
  entry: Entry,
  payload: EntryPayload,
  { submittedBy, outside = false }: Pick<Submitter, 'submittedBy'> & { outside?: boolean },
  session: SessionContext,
): void {
  const { owner, audit, shell } = session;
  // Where an admission decides about entries, it has noted the submission.
  if (owner.admission === undefined || owner.admission === '') noteSubmission(entry, payload, { submittedBy }, session);
  const how = { ...(entry.first !== undefined && { attempt: 2 }), ...(outside && { outside: true as const }) };
  const event = { type: 'start', ...aboutOf(entry, session), fence: owner.fence, epoch: shell.epoch, ...how } as const;
  audit.note(owner.keys.tenant, () => event);
}

/** Notes an entry's end after its Result is stored. */
export function noteEnd(entry: Entry, result: WireResult, session: SessionContext): void {
  const about = aboutOf(entry, session);
  session.audit.note(session.owner.keys.tenant, () => endEvent(about, result, session.redaction));
}

/** Notes a file operation outside of the mailbox before it is decided about. */
export function noteFileCall(
  id: string,
  operation: FileOperation,
  submitter: Submitter,
  { owner, generation, audit, spec, redaction }: SessionContext,
): void {
  const about = { session: owner.keys.session, generation, entry: id };
  const acceptedAt = Date.now();
  audit.note(owner.keys.tenant, () =>
    submissionEvent(about, { acceptedAt }, { type: 'file', operation }, spec, redaction, submitter),
  );
}

/** Notes the end of a file operation outside of the mailbox. */
export function noteFileEnd(
  id: string,
  error: ShellfleetError | undefined,
  startedAt: number,
  { owner, generation, audit }: SessionContext,
): void {
  const outcome = error === undefined ? { outcome: 'success' } : { outcome: 'error', error: error.code };
  const event: AuditEvent = {
    ...{ type: 'end', session: owner.keys.session, generation, entry: id, ...outcome, exitCode: null },
    ...{ stdoutBytes: 0, stderrBytes: 0, redactions: 0, runMs: Math.round(performance.now() - startedAt) },
  };
  audit.note(owner.keys.tenant, () => event);
}

export function aboutOf(entry: Pick<Entry, 'id'>, { owner, generation }: SessionContext): AuditedEntry {
  return { session: owner.keys.session, generation, entry: entry.id };
}
