import { isAnswerWaiting, isGranted, readConfirmed, wakeForAnswers, writeAnswer } from '@shellfleet/mailbox';
import { type ApprovalKeys, approvalKeys, ShellfleetError } from '@shellfleet/protocol';
import { listHosts } from '../hosts/list-hosts.ts';
import { checkAnswer, notAccepted, sealAnswer } from './answer-approval.ts';
import type { ApprovalsContext } from './approvals-context.ts';

/**
 * After this time a revocation that was written holds. Hosts read written answers before they look for a grant, and use
 * the grant within 1.5 s.
 */
const HOLDS_AFTER_MS = 2_000;
const ASK_AGAIN_MS = 300;

export async function revokeApproval(
  context: ApprovalsContext,
  id: string,
  answeredBy: string | undefined,
): Promise<void> {
  const { redis } = context;
  const keys = approvalKeys(context.namespace, context.tenant);
  const answer = checkAnswer(context, { type: 'revoke', id, answeredBy });
  if (!(await isGranted(redis, keys, id))) throw approvalNotFound(context, id);
  using wake = await context.feeds.follow(keys.feed);
  const written = await writeAnswer(redis, keys, sealAnswer(context, keys, answer));
  const holds = AbortSignal.timeout(HOLDS_AFTER_MS);
  while (!holds.aborted) {
    // A host that starts after this list was read finds the revocation in Redis.
    const [hosts] = await Promise.all([listLiveHosts(context), wakeForAnswers(redis, keys, written)]);
    const again = AbortSignal.any([holds, AbortSignal.timeout(ASK_AGAIN_MS)]);
    while (!again.aborted) {
      const { confirmed, isWaiting, holdsStill } = await look(context, keys, { id, written });
      if (!isWaiting && holdsStill) throw notAccepted(id, 'so the approval still holds');
      if (!isWaiting && hosts.length > 0 && hosts.every((host) => confirmed.includes(host))) return;
      await wake.next(again).catch((error: unknown) => {
        if (!again.aborted) throw error;
      });
    }
  }
}

function approvalNotFound({ tenant }: ApprovalsContext, id: string): ShellfleetError {
  return new ShellfleetError(
    'APPROVAL_NOT_FOUND',
    `No approval of the question ${id} holds in the tenant ${tenant}. List those that hold with \`shellfleet approvals ls --approved\`.`,
    { id },
  );
}

async function listLiveHosts(context: ApprovalsContext): Promise<string[]> {
  const hosts = await listHosts(context);
  return hosts.filter(({ state }) => state !== 'unreachable').map((host) => host.id);
}

/** Reads the state of a revocation. The reads must stay in this order. */
async function look({ redis }: ApprovalsContext, keys: ApprovalKeys, { id, written }: { id: string; written: string }) {
  const [confirmed, isWaiting, holdsStill] = await Promise.all([
    readConfirmed(redis, keys, written),
    isAnswerWaiting(redis, keys, written),
    isGranted(redis, keys, id),
  ]);
  return { confirmed, isWaiting, holdsStill };
}
