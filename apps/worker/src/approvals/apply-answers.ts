import {
  applyAnswer,
  digestOfQuestion,
  dropAnswer,
  openQuestion,
  readAnswers,
  readQuestion,
  withdrawEndedOf,
} from '@shellfleet/mailbox';
import {
  type ApprovalAnswer,
  type ApprovalEnd,
  type ApprovalGrant,
  type ApprovalKeys,
  approvalAnswerSchema,
  type StoredQuestion,
  tryJson,
} from '@shellfleet/protocol';
import { type Sealer, type Signature, sealPlace } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { Audit } from '../audit/audit.ts';
import type { Logger } from '../log/logger.ts';

/** Records an answer in the audit, or returns why it may not be given. `question` is absent if it is not pending. */
export type AnswerCheck = (
  answer: ApprovalAnswer,
  about: { keys: ApprovalKeys; question: StoredQuestion | undefined; signature: Signature | undefined },
) => Promise<string | undefined>;

interface ApplyDeps {
  redis: Redis;
  sealer: Sealer;
  check: AnswerCheck;
  audit: Pick<Audit, 'recorded'>;
  logger: Logger;
}

/** Applies and removes a tenant's waiting answers, in order. Returns whether entries were decided. */
export async function applyAnswers(keys: ApprovalKeys, deps: ApplyDeps): Promise<boolean> {
  let decided = false;
  // Ends when no answer waits: each round removes those that it has read.
  for (;;) {
    const waiting = await readAnswers(deps.redis, keys);
    for (const { id, sealed } of waiting) decided = (await applyOne(keys, id, sealed, deps)) || decided;
    if (waiting.length === 0) return decided;
  }
}

async function applyOne(keys: ApprovalKeys, id: string, sealed: string, deps: ApplyDeps): Promise<boolean> {
  const { redis, sealer, check, logger } = deps;
  const refuse = async (problem: string) => {
    logger.warn({ problem }, 'approvals.answer-refused');
    // The writer sees only that the answer is gone. The audit records the refusal first, unless the disk fails.
    await deps.audit.recorded(keys.tenant).catch(() => {});
    await dropAnswer(redis, keys, id);
    return false;
  };
  const opened = openAnswer(sealed, keys, sealer);
  if (opened === undefined)
    return refuse(
      `it is not an answer that ${sealer.verifies ? 'an approver of the tenant' : 'a process of this fleet'} has written`,
    );
  const { answer, signature } = opened;
  if (answer.type !== 'revoke') await withdrawEndedOf(redis, keys, answer.id);
  const pending = answer.type === 'revoke' ? undefined : await readQuestion(redis, keys, answer.id);
  // The question was answered or has ended, or another host has applied this answer.
  if (answer.type !== 'revoke' && pending === undefined) {
    await dropAnswer(redis, keys, id);
    return false;
  }
  const question = pending && openQuestion(sealer, keys, pending);
  const problem = await check(answer, { keys, question, signature });
  if (problem !== undefined) return refuse(problem);
  const { id: questionId, type } = answer;
  const change = { id, question: questionId, type, end: toEnd(answer) };
  if (answer.type !== 'approve') return isApplied(await applyAnswer(redis, keys, change));
  const { scope, answeredBy } = answer;
  if (pending === undefined || question === undefined)
    return refuse('its question cannot be opened with the seal keys of this host');
  if (scope === 'prefix' && question.amendment === undefined) return refuse('its question offers no rule to allow');
  if (sealer.verifies && answer.asked !== digestOfQuestion(question))
    return refuse('it was given to another question than the one that is pending');
  const signed = sealer.verifies ? { answer: sealed } : {};
  const { askedAt, count } = pending;
  const grant: ApprovalGrant = { question, scope, answeredBy, askedAt, count, ...signed };
  const text = sealer.seal(JSON.stringify(grant), sealPlace('approval-grant', keys, { question: questionId }));
  return isApplied(
    await applyAnswer(redis, keys, { ...change, scope, grant: text, covers: question.covers !== undefined }),
  );
}

const isApplied = ({ type }: { type: string }) => type === 'applied';

/** Opens an answer. Undefined when invalid, or, where keys are configured, not signed by an approver of the tenant. */
function openAnswer(sealed: string, keys: ApprovalKeys, sealer: Sealer) {
  try {
    const { plain, signature } = sealer.openSigned(sealed, sealPlace('approval-answer', keys, { question: '' }));
    const answer = approvalAnswerSchema.safeParse(tryJson(plain)).data;
    return answer && { answer, signature };
  } catch {
    return undefined;
  }
}

/** Returns whether a known approver gave a grant: with configured keys, a grant contains the signed answer. */
export function isAnswered(id: string, grant: ApprovalGrant, keys: ApprovalKeys, sealer: Sealer): boolean {
  if (!sealer.verifies) return true;
  const answer = grant.answer === undefined ? undefined : openAnswer(grant.answer, keys, sealer)?.answer;
  return (
    answer?.type === 'approve' &&
    answer.id === id &&
    answer.scope === grant.scope &&
    answer.asked === digestOfQuestion(grant.question)
  );
}

function toEnd(answer: ApprovalAnswer): ApprovalEnd {
  const { answeredBy } = answer;
  if (answer.type === 'approve') return { state: 'approved', scope: answer.scope, answeredBy };
  if (answer.type === 'revoke') return { state: 'revoked', answeredBy };
  const { reason, abort } = answer;
  return {
    state: 'denied',
    answeredBy,
    ...(reason === undefined ? {} : { reason }),
    ...(abort === undefined ? {} : { abort }),
  };
}
