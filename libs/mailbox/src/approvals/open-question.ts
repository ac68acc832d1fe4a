import { createHash } from 'node:crypto';
import {
  type Approval,
  type ApprovalGrant,
  type ApprovalKeys,
  approvalGrantSchema,
  approvalQuestionSchema,
  type StoredQuestion,
  TOOL_ASKER,
  toCanonicalJson,
  toCommandId,
  tryJson,
} from '@shellfleet/protocol';
import { type Sealer, type SealPlace, sealPlace } from '@shellfleet/sealing';
import { hashOfQuestion } from './ask.ts';
import type { PendingQuestion } from './read.ts';

type Opener = Pick<Sealer, 'open'>;
type Sealed = Pick<PendingQuestion, 'id' | 'sealed'>;

/** Opens a question. Returns undefined if no key of this process sealed it. */
export function openQuestion(sealer: Opener, keys: ApprovalKeys, { id, sealed }: Sealed): StoredQuestion | undefined {
  const place = sealPlace('approval-question', keys, { question: hashOfQuestion(id) });
  return approvalQuestionSchema.safeParse(open(sealer, sealed, place)).data;
}

/** Opens a grant. Returns undefined if no key of this process sealed it for this question. */
export function openGrant(sealer: Opener, keys: ApprovalKeys, { id, sealed }: Sealed): ApprovalGrant | undefined {
  const place = sealPlace('approval-grant', keys, { question: id });
  return approvalGrantSchema.safeParse(open(sealer, sealed, place)).data;
}

/** Returns a pending question as clients see it, or undefined if no key of this process sealed it. */
export function openPending(sealer: Opener, keys: ApprovalKeys, pending: PendingQuestion): Approval | undefined {
  const { id, written, count, first, askedAt, expiresAt } = pending;
  const question = openQuestion(sealer, keys, pending);
  if (question === undefined) return undefined;
  const ofFiles = sealPlace('approval-question', keys, { question: id });
  const filesWritten = written.map((path) => open(sealer, path, ofFiles)).filter((path) => typeof path === 'string');
  return {
    ...{ ...question, id, state: 'pending', count },
    // The question was sealed for its first asker, which may have been cancelled since.
    ...(first.session === TOOL_ASKER
      ? {}
      : { sessionId: first.session, commandId: toCommandId(first.session, first.entryId) }),
    askedAt: new Date(askedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
    ...(filesWritten.length === 0 ? {} : { filesWritten: [...new Set(filesWritten)] }),
  };
}

/** Returns the digest of a question's visible content that a signed answer contains. */
export function digestOfQuestion(question: StoredQuestion): string {
  return createHash('sha256').update(toCanonicalJson(question)).digest('hex');
}

function open(sealer: Opener, sealed: string, place: SealPlace): unknown {
  try {
    return tryJson(sealer.open(sealed, place));
  } catch {
    return undefined;
  }
}
