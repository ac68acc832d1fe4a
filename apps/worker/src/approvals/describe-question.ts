import { createHash } from 'node:crypto';
import { type EntryPayload, type ResolvedSessionSpec, type StoredQuestion, toCommandId } from '@shellfleet/protocol';
import type { AdmissionInput, ApprovalQuestion } from '../admission/admission.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import { describeFiles } from './describe-files.ts';

/** Describes a question to a person, with all texts of the session redacted. */
export function toStoredQuestion(
  { session, entryId, payload, spec, attempt, wider, submittedBy }: AdmissionInput,
  asked: ApprovalQuestion,
  redaction: Pick<SessionRedaction, 'value'>,
  under = '',
): StoredQuestion {
  const { reason, justification, amendment, outside, covers, directory } = asked;
  const { number, ...firstAttempt } = attempt;
  const question = {
    sessionId: session,
    commandId: toCommandId(session, entryId),
    reason,
    place: placeOf(outside ? { ...spec, sandbox: wider.sandbox } : spec, payload),
    env: namesOf(spec, payload),
    ...describePayload(payload),
    ...(directory && ('path' in directory ? { cwd: directory.path } : { cwdUnknown: directory.unknown })),
    ...(justification === undefined ? {} : { justification }),
    ...(outside === undefined ? {} : { outside }),
    ...('output' in firstAttempt ? { firstAttempt } : {}),
  };
  return {
    ...redaction.value(question),
    // Not redacted: the caller's id is compared when somebody answers.
    ...(submittedBy === undefined ? {} : { submittedBy }),
    ...(amendment !== undefined && isShownWhole(amendment, redaction) ? { amendment } : {}),
    ...(covers !== undefined && isShownWhole(covers.pattern, redaction)
      ? { covers: { pattern: covers.pattern, under } }
      : {}),
  };
}

/** Returns true if redaction leaves a rule unchanged. A rule that redaction would change is not offered. */
function isShownWhole(rule: unknown, redaction: Pick<SessionRedaction, 'value'>): boolean {
  return JSON.stringify(redaction.value(rule)) === JSON.stringify(rule);
}

/** Returns the names of all variables of the command, the session and its secrets. */
function namesOf({ env, secrets }: ResolvedSessionSpec, payload: EntryPayload): string[] {
  if (payload.type === 'file') return [];
  const own = payload.type === 'command' ? payload.env : {};
  return Object.keys({ ...own, ...env, ...secrets });
}

type Described = Pick<StoredQuestion, 'script' | 'stdin' | 'content'>;

function describePayload(payload: EntryPayload): Described {
  if (payload.type === 'restart') return { script: '# a fresh shell in place of the present one' };
  if (payload.type === 'file') return describeFiles(payload.operation);
  const { script, stdin } = payload;
  const bytes = stdin === undefined ? undefined : Buffer.from(stdin, 'base64');
  const sha256 = bytes === undefined ? undefined : createHash('sha256').update(bytes).digest('hex');
  return {
    script,
    ...(bytes === undefined || sha256 === undefined ? {} : { stdin: { bytes: bytes.byteLength, sha256 } }),
  };
}

function placeOf({ policy, sandbox, image }: ResolvedSessionSpec, payload: EntryPayload): string {
  const network = (payload.type === 'command' ? payload.network : undefined) ?? sandbox?.network;
  const parts = [
    `policy ${policy.type}`,
    ...(sandbox?.mode === undefined ? [] : [`mode ${sandbox.mode}`]),
    ...(network === undefined ? [] : [`network ${network}`]),
    ...(image === undefined ? [] : [`image ${image}`]),
  ];
  return parts.join(', ');
}
