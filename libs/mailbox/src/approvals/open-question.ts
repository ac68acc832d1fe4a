import {
  type Approval,
  type ApprovalKeys,
  approvalQuestionSchema,
  type StoredQuestion,
  TOOL_ASKER,
  toCommandId,
  tryJson,
} from '@shellfleet/protocol';
import { type Sealer, type SealPlace, sealPlace } from '@shellfleet/sealing';
import type { PendingQuestion } from './read.ts';

type Opener = Pick<Sealer, 'open'>;

/** Undefined when it was not sealed with a key of this process. */
export function openQuestion(
  sealer: Opener,
  keys: ApprovalKeys,
  { id, sealed }: Pick<PendingQuestion, 'id' | 'sealed'>,
): StoredQuestion | undefined {
  const hash = id.split('.', 1)[0] ?? '';
  const text = open(sealer, sealed, sealPlace('approval-question', keys, { question: hash }));
  return approvalQuestionSchema.safeParse(text).data;
}

/** A question that waits, as everybody is shown it. Undefined when it was not sealed with a key of this process. */
export function openPending(sealer: Opener, keys: ApprovalKeys, pending: PendingQuestion): Approval | undefined {
  const { id, written, count, first, askedAt, expiresAt } = pending;
  const question = openQuestion(sealer, keys, pending);
  if (question === undefined) return undefined;
  const ofFiles = sealPlace('approval-question', keys, { question: id });
  const filesWritten = written.map((path) => open(sealer, path, ofFiles)).filter((path) => typeof path === 'string');
  return {
    ...{ ...question, id, state: 'pending', count },
    // The question was sealed for the entry that asked first of all, which may have been cancelled since.
    ...(first.session === TOOL_ASKER
      ? {}
      : { sessionId: first.session, commandId: toCommandId(first.session, first.entryId) }),
    askedAt: new Date(askedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
    ...(filesWritten.length === 0 ? {} : { filesWritten: [...new Set(filesWritten)] }),
  };
}

function open(sealer: Opener, sealed: string, place: SealPlace): unknown {
  try {
    return tryJson(sealer.open(sealed, place));
  } catch {
    return undefined;
  }
}
