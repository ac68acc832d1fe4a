import {
  openGrant,
  openPending,
  readApprovalEnd,
  readAskersOf,
  readGrants,
  readQuestions,
  stillAsks,
} from '@shellfleet/mailbox';
import { type Approval, type ApprovalKeys, approvalKeys, parseOrThrow, sessionIdSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import type { ApprovalsContext } from './approvals-context.ts';

/** Which approvals are listed. */
export interface ApprovalFilter {
  /**
   * Session that asks.
   * @default any
   */
  sessionId?: string | undefined;
  /**
   * State of the listed approvals: `pending` are open questions; `approved` hold and can be revoked.
   * @default 'pending'
   */
  state?: 'pending' | 'approved' | undefined;
}

const filterSchema = z.strictObject({
  sessionId: sessionIdSchema.optional(),
  state: z.enum(['pending', 'approved'], "must be 'pending' or 'approved'").default('pending'),
});

export async function listApprovals(context: ApprovalsContext, given: ApprovalFilter): Promise<Approval[]> {
  const { sessionId, state } = parseOrThrow(filterSchema, given, 'COMMAND_INVALID', 'The filter');
  const keys = approvalKeys(context.namespace, context.tenant);
  if (state === 'pending') return listPending(context, keys, sessionId);
  const grants = await listGrants(context, keys);
  return grants.filter((grant) => sessionId === undefined || grant.sessionId === sessionId);
}

async function listPending(
  context: ApprovalsContext,
  keys: ApprovalKeys,
  sessionId: string | undefined,
): Promise<Approval[]> {
  const questions = await readQuestions(context.redis, keys);
  const asked = await Promise.all(
    questions.map(async (question) => {
      if (sessionId === undefined) return true;
      const askers = await readAskersOf(context.redis, keys, question.id);
      const own = askers.filter(({ session }) => session === sessionId);
      const asks = await Promise.all(own.map((asker) => stillAsks(context.redis, keys, asker)));
      return asks.includes(true);
    }),
  );
  const own = questions.filter((_question, index) => asked[index]);
  return own.flatMap((question) => openPending(context.sealer, keys, question) ?? []).sort(byTime);
}

async function listGrants(context: ApprovalsContext, keys: ApprovalKeys): Promise<Approval[]> {
  const grants = await readGrants(context.redis, keys);
  const opened = grants.flatMap((stored): Approval[] => {
    const grant = openGrant(context.sealer, keys, stored);
    if (grant === undefined) return [];
    const { question, scope, answeredBy, count } = grant;
    const askedAt = new Date(grant.askedAt).toISOString();
    return [{ ...question, id: stored.id, state: 'approved', scope, answeredBy, count, askedAt, expiresAt: askedAt }];
  });
  return opened.sort(byTime);
}

/** Returns how a question ended. `before` is the question while it was pending. */
export async function readEnded(context: ApprovalsContext, before: Approval): Promise<Approval> {
  const keys = approvalKeys(context.namespace, context.tenant);
  const end = await readApprovalEnd(context.redis, keys, before.id);
  if (end === undefined) return { ...before, state: 'withdrawn' };
  const { state, scope, answeredBy, reason } = end;
  return {
    ...before,
    state,
    ...(scope === undefined ? {} : { scope }),
    ...(answeredBy === undefined ? {} : { answeredBy }),
    ...(reason === undefined ? {} : { answer: reason }),
  };
}

const byTime = (a: Approval, b: Approval) => (a.askedAt < b.askedAt ? -1 : 1);
