import { type Caller, toCanonicalJson } from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import type { AdmissionInput, ApprovalQuestion } from '../admission/admission.ts';

// Keyed hashes of what an answer is about. They reveal nothing, and differ for different questions.
// BIND-1. Two questions of one tenant have the same hash exactly when they differ only in the session. So all who ask
//         one question are the same caller, who must not answer it.
// BIND-2. An answer holds for one binding: the question, session, generation, entry, attempt and shell. In another
//         directory the same words are another question.
// BIND-3. A question that cannot be written as a key has none, so no answer to another question approves it.
// BIND-4. The hash of a question about files includes the session and its generation, which have their own files.

/** A tool call about which a person may have to be asked. */
export interface ToolCallToAdmit {
  tenant: string;
  id: string;
  name: string;
  /** Arguments as JSON. */
  args: string;
  /** Caller that submitted it, if its client named one. */
  submittedBy: Caller | undefined;
  approvalTimeoutMs: number;
}

export interface BoundQuestion {
  /** Keyed hash of the question: 20 hexadecimal digits. */
  hash: string;
  /** Keyed hash of the question and its asker. */
  binding: string;
  /** Keyed hash of what an approval for a directory of the session depends on. */
  under: string;
}

/** Binds a question to its asker. Throws when a part of it cannot be written as JSON (BIND-3). */
export function bindQuestion(
  input: AdmissionInput,
  asked: ApprovalQuestion,
  namespace: string,
  sealer: Sealer,
): BoundQuestion {
  const { tenant, session, generation, entryId, payload, spec, epoch, attempt, opens } = input;
  const caller = input.submittedBy?.id ?? null;
  // All of these except `place` are irrelevant to what runs.
  const {
    labels,
    priority,
    near,
    idleTimeoutMs,
    maxLifetimeMs,
    hostGraceMs,
    onHostLoss,
    keepOnFailure,
    approvalTimeoutMs,
    ...place
  } = spec;
  const { matchedRules = [], reason, directory } = asked;
  const outside = asked.outside && { sandbox: input.wider.sandbox };
  // An answer about a command in a running shell does not cover the commands that open a shell.
  const opening = opens && spec.startupCommands.length + spec.shutdownCommands.length > 0;
  const digest = digestWith(sealer);
  const what = digest([
    'approval',
    namespace,
    tenant,
    caller,
    payload,
    place,
    attempt,
    opening,
    matchedRules,
    outside ?? null,
    reason,
    ...(asked.covers === undefined ? [] : [session, generation]),
    directory ?? null,
  ]);
  const under = digest([
    'approval of a directory',
    namespace,
    tenant,
    caller,
    session,
    generation,
    place,
    matchedRules,
  ]);
  const binding = digest(['approval of', what, session, generation, entryId, epoch]);
  return { hash: toHash(what), binding, under };
}

/** Binds a question about a tool call. Its answer holds for one call of one tenant. */
export function bindToolCall(
  { tenant, id, name, args, submittedBy }: Omit<ToolCallToAdmit, 'approvalTimeoutMs'>,
  { matchedRules = [], reason }: ApprovalQuestion,
  namespace: string,
  sealer: Sealer,
): BoundQuestion {
  const digest = digestWith(sealer);
  const caller = submittedBy?.id ?? null;
  const what = digest(['approval of a tool call', namespace, tenant, caller, name, args, matchedRules, reason]);
  return { hash: toHash(what), binding: digest(['approval of', what, id]), under: '' };
}

const digestWith = (sealer: Sealer) => (of: unknown) => sealer.digest(toCanonicalJson(JSON.parse(JSON.stringify(of))));

/** Returns the first hexadecimal digits of a digest, without the id of its key. */
const toHash = (digest: string) =>
  Buffer.from(digest.slice(digest.indexOf('.') + 1), 'base64url')
    .toString('hex')
    .slice(0, 20);
