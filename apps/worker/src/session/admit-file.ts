import { type EntryId, type FileOperation, ShellfleetError } from '@shellfleet/protocol';
import type { AdmissionInput, Verdict } from '../admission/admission.ts';
import type { SessionApprovals } from '../approvals/host-approvals.ts';
import type { Asks, FileToAdmit } from '../run/file-calls.ts';
import type { SessionContext } from '../run/session-context.ts';
import { listWritten } from './list-written.ts';
import type { SessionParts } from './session-parts.ts';

// The step before a file operation outside of the mailbox.
// ADMIT-FILE-1. An operation reaches the keeper only when the session's admission admits it. An approved operation does
//               so within the time for which a revocation waits (HOST-APPROVALS-1).
// ADMIT-FILE-2. An operation that waits for a person is not kept here. Its caller requests it again after the answer,
//               and it is decided again. So it survives this process and this host.
// ADMIT-FILE-3. The answer is about the bytes that were shown. The parts of a larger file name its size and digest
//               (`whole`) and ask one question together. The last part goes to the keeper only if all of them match.

/** Time in which an approved operation must begin. It is less than START_WITHIN_MS of HOST-APPROVALS-1. */
const BEGIN_WITHIN_MS = 1_000;

/** `about` returns what a verdict about the session depends on now. */
type Parts = Pick<SessionParts, 'context' | 'admission'> & {
  about: Omit<AdmissionInput, 'entryId' | 'opens' | 'payload' | 'attempt'>;
};

/** Calls `begin` for an admitted operation, or asks. Throws FILE_DENIED, APPROVAL_EXPIRED or AUDIT_UNAVAILABLE. */
export async function admitFile<T>(
  file: FileToAdmit,
  parts: Parts,
  approvals: SessionApprovals,
  begin: () => { begun: T },
): Promise<{ begun: T } | { asks: Asks }> {
  const { admission, context } = parts;
  if (admission.digest === '') return begin();
  const input = inputAbout(file, parts);
  // Ends when the file is admitted or denied, or a person is asked. An answer in between leads to one of these.
  for (;;) {
    const admitted = await approvals.starts.during(input, async () => {
      const lookedAt = performance.now();
      const verdict = await admission.decide(input);
      if (verdict.type !== 'admit') return { verdict };
      await listWritten(file.operation, admission, context);
      const isLate = verdict.startBy !== undefined && performance.now() - lookedAt > BEGIN_WITHIN_MS;
      if (isLate) return {};
      if (verdict.startBy !== undefined) note('admit', input, parts);
      return begin();
    });
    if ('begun' in admitted) return admitted;
    const { verdict } = admitted;
    if (verdict?.type === 'deny') throw await denied(file.operation, verdict, input, parts);
    const asks = verdict?.type === 'hold' ? await ask(file, verdict, input, parts, approvals) : undefined;
    if (asks !== undefined) return { asks };
  }
}

/** Returns the same input for all parts of one file. The input names no shell, since a file outlives the shell. */
function inputAbout({ id, operation, signature, submittedBy }: FileToAdmit, parts: Parts): AdmissionInput {
  const isWrite = operation.name === 'write';
  const entryId = isWrite && operation.whole !== undefined ? operation.transfer : id;
  const shown = isWrite && operation.whole !== undefined ? { offset: 0, last: true, data: '' } : {};
  const decided = isWrite ? { ...operation, transfer: '', ...shown } : operation;
  return {
    ...{ ...parts.about, epoch: 0, entryId, signature, submittedBy, opens: false },
    payload: { type: 'file', operation: decided },
    attempt: { number: 1 },
  };
}

/** Asks about the operation. Returns undefined when somebody has answered meanwhile. */
async function ask(
  { operation, asks }: FileToAdmit,
  { question: asked }: Extract<Verdict, { type: 'hold' }>,
  input: AdmissionInput,
  parts: Parts,
  approvals: SessionApprovals,
): Promise<Asks | undefined> {
  const isPart = operation.name === 'write' && !(operation.offset === 0 && operation.last);
  if (!asks || (isPart && operation.whole === undefined)) return { state: 'would-ask' };
  const { context } = parts;
  await approvals.keepWanted(input);
  const added = await approvals.ask(input, asked, context.redaction);
  switch (added.type) {
    case 'answered':
      return undefined;
    case 'refused':
      throw await denied(operation, { type: 'deny', reason: added.reason }, input, parts);
    case 'failed':
      throw added.error;
    case 'pending':
      note('hold', input, parts, { question: added.data.id, reason: added.data.reason });
      return { state: 'asks', asker: input.entryId as EntryId, question: added.data };
  }
}

/** Records a denial in the audit, then returns its error (ADMIT-7). */
async function denied(
  { name, path }: FileOperation,
  { reason, by }: Extract<Verdict, { type: 'deny' }>,
  input: AdmissionInput,
  { context, admission }: Parts,
): Promise<ShellfleetError> {
  const { tenant, session, generation, entryId: entry } = input;
  await context.audit.record(tenant, {
    ...{ type: 'decision', session, generation, entry, decision: 'deny', digest: admission.digest },
    ...{ reason: context.redaction.text(reason), ...(by === undefined ? {} : { by }) },
  });
  const message = `The ${name} of ${path} is denied: ${reason}`;
  return new ShellfleetError('FILE_DENIED', message, { path, operation: name, ...(by === undefined ? {} : { by }) });
}

function note(
  decision: 'admit' | 'hold',
  { tenant, session, generation, entryId: entry }: AdmissionInput,
  { context, admission }: { context: SessionContext } & Pick<Parts, 'admission'>,
  more: { question?: string; reason?: string } = {},
): void {
  const { digest } = admission;
  context.audit.note(tenant, () => ({ type: 'decision', session, generation, entry, decision, digest, ...more }));
}
