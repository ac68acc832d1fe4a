import { toCanonicalJson } from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import type { AdmissionInput, ApprovalQuestion } from '../admission/admission.ts';

// What an answer is about, as keyed hashes. Nothing can be read from them, and different questions have different ones.
//
// BIND-1. Questions of one tenant have the same hash exactly when they differ in nothing but the session.
// BIND-2. An answer holds for one binding: this question, in this generation of this session, for this entry, attempt and
//         shell. In another directory a command is another question, also when both have the same words.
// BIND-3. A question that cannot be written as a key has none. It is never approved by the answer to another question.
// BIND-4. Files are a session's own, so the hash of a question about files includes the session and its generation.

export interface BoundQuestion {
  /** Keyed hash of what is asked: 20 hexadecimal digits. */
  hash: string;
  /** Keyed hash of what is asked and of the asker. */
  binding: string;
  /** Keyed hash of what an answer for a folder of the session depends on. */
  under: string;
}

/** Throws when a part of the question cannot be written as JSON (BIND-3). */
export function bindQuestion(
  input: AdmissionInput,
  asked: ApprovalQuestion,
  namespace: string,
  sealer: Sealer,
): BoundQuestion {
  const { tenant, session, generation, entryId, payload, spec, epoch, attempt, opens } = input;
  // All of these but `place` change nothing about what runs.
  const {
    labels,
    priority,
    idleTimeoutMs,
    maxLifetimeMs,
    hostGraceMs,
    onHostLoss,
    keepOnFailure,
    approvalTimeoutMs,
    ...place
  } = spec;
  const { matchedRules = [], reason, directory } = asked;
  const outside = asked.outside && { sandbox: input.outside.sandbox };
  // An answer about a command in a shell that is there says nothing about the commands that open one.
  const opening = opens && spec.startupCommands.length + spec.shutdownCommands.length > 0;
  const digest = digestWith(sealer);
  const what = digest([
    'approval',
    namespace,
    tenant,
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
  const under = digest(['approval of a folder', namespace, tenant, session, generation, place, matchedRules]);
  const binding = digest(['approval of', what, session, generation, entryId, epoch]);
  return { hash: toHash(what), binding, under };
}

/** Does the same for a tool call. The caller alone asks about it, so its answer holds for one call of one tenant. */
export function bindToolCall(
  { tenant, id, name, args }: { tenant: string; id: string; name: string; args: string },
  { matchedRules = [], reason }: ApprovalQuestion,
  namespace: string,
  sealer: Sealer,
): BoundQuestion {
  const digest = digestWith(sealer);
  const what = digest(['approval of a tool call', namespace, tenant, name, args, matchedRules, reason]);
  return { hash: toHash(what), binding: digest(['approval of', what, id]), under: '' };
}

const digestWith = (sealer: Sealer) => (of: unknown) => sealer.digest(toCanonicalJson(JSON.parse(JSON.stringify(of))));

/** Returns the first hexadecimal digits of a digest, without the id of its key. */
const toHash = (digest: string) =>
  Buffer.from(digest.slice(digest.indexOf('.') + 1), 'base64url')
    .toString('hex')
    .slice(0, 20);
