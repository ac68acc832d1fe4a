import { createHash } from 'node:crypto';
import { type EntryPayload, type ResolvedSessionSpec, type StoredQuestion, toCommandId } from '@shellfleet/protocol';
import type { AdmissionQuestion, ApprovalQuestion } from '../admission/admission.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';

/** What a person is shown. Every text of it is redacted. */
export function describeQuestion(
  { session, entryId, payload, spec, attempt, outside: wider }: AdmissionQuestion,
  asked: ApprovalQuestion,
  redaction: Pick<SessionRedaction, 'value'>,
): StoredQuestion {
  const { reason, justification, amendment, outside } = asked;
  const { number, ...firstAttempt } = attempt;
  const question = {
    sessionId: session,
    commandId: toCommandId(session, entryId),
    reason,
    place: placeOf(outside ? { ...spec, sandbox: wider.sandbox } : spec, payload),
    ...describePayload(payload),
    ...(justification === undefined ? {} : { justification }),
    ...(outside === undefined ? {} : { outside }),
    ...('output' in firstAttempt ? { firstAttempt } : {}),
  };
  // A rule that redaction changed would allow something else than it shows.
  const shown = amendment === undefined ? undefined : redaction.value(amendment);
  const isWhole = shown !== undefined && JSON.stringify(shown) === JSON.stringify(amendment);
  return { ...redaction.value(question), ...(isWhole ? { amendment: shown } : {}) };
}

type Described = Pick<StoredQuestion, 'script' | 'env' | 'cwd' | 'stdin'>;

function describePayload(payload: EntryPayload): Described {
  if (payload.type === 'restart') return { script: '# a fresh shell in place of the present one', env: [] };
  if (payload.type === 'file') return { script: `# ${payload.operation.name} ${payload.operation.path}`, env: [] };
  const { script, env, cwd, stdin } = payload;
  const bytes = stdin === undefined ? undefined : Buffer.from(stdin, 'base64');
  const sha256 = bytes === undefined ? undefined : createHash('sha256').update(bytes).digest('hex');
  return {
    script,
    env: Object.keys(env ?? {}),
    ...(cwd === undefined ? {} : { cwd }),
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
