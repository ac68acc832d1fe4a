import {
  openPending,
  openQuestion as openStored,
  type PendingQuestion,
  readApprovalEnd,
  readAskersOf,
  readGrants,
  readQuestions,
  stillAsks,
} from '@shellfleet/mailbox';
import {
  type Approval,
  type ApprovalKeys,
  approvalGrantSchema,
  approvalKeys,
  parseOrThrow,
  type StoredQuestion,
  sessionIdSchema,
  tryJson,
} from '@shellfleet/protocol';
import { type SealPlace, sealPlace } from '@shellfleet/sealing';
import { z } from 'zod';
import type { ApprovalsContext } from './approvals-context.ts';

/** Which approvals are listed. */
export interface ApprovalFilter {
  /**
   * Only those that this session asks.
   * @default any
   */
  sessionId?: string | undefined;
  /**
   * `pending`: the questions that wait. `approved`: the approvals that hold, which can be revoked.
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

/** The questions that wait, the oldest first. */
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

export function openQuestion(
  { sealer }: ApprovalsContext,
  keys: ApprovalKeys,
  pending: PendingQuestion,
): StoredQuestion | undefined {
  return openStored(sealer, keys, pending);
}

async function listGrants(context: ApprovalsContext, keys: ApprovalKeys): Promise<Approval[]> {
  const grants = await readGrants(context.redis, keys);
  const opened = grants.flatMap(({ id, sealed }) => {
    const grant = open(context, sealed, sealPlace('approval-grant', keys, { question: id }), approvalGrantSchema);
    if (grant === undefined) return [];
    const { question, scope, answeredBy, askedAt, count } = grant;
    const asked = { ...toApproval(question), id, count, ...toTimes(askedAt, askedAt) };
    return [{ ...asked, state: 'approved' as const, scope, answeredBy }];
  });
  return opened.sort(byTime);
}

/** A question that waited before and does not any more. */
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

type Described = Omit<Approval, 'id' | 'state' | 'count' | 'askedAt' | 'expiresAt'>;
const toApproval = (question: StoredQuestion): Described => question;

const toTimes = (askedAt: number, expiresAt: number) => ({
  askedAt: new Date(askedAt).toISOString(),
  expiresAt: new Date(expiresAt).toISOString(),
});

const byTime = (a: Approval, b: Approval) => (a.askedAt < b.askedAt ? -1 : 1);

function open<T extends z.ZodType>(
  { sealer }: ApprovalsContext,
  sealed: string,
  place: SealPlace,
  schema: T,
): z.infer<T> | undefined {
  try {
    return schema.safeParse(tryJson(sealer.open(sealed, place))).data;
  } catch {
    return undefined;
  }
}
