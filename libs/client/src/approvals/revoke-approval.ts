import { isAnswerWaiting, readConfirmed, readGrants, wakeForAnswers, writeAnswer } from '@shellfleet/mailbox';
import { approvalKeys } from '@shellfleet/protocol';
import { listHosts } from '../hosts/list-hosts.ts';
import { approvalNotFound, checkAnswer, sealAnswer } from './answer-approval.ts';
import type { ApprovalsContext } from './approvals-context.ts';

/**
 * A host that starts something on a grant does so within 1.5 s after it looked for it, by the clock of Redis, and it looks only after it has
 * applied the answers that are written. So this long after the revocation was written, nothing starts on the grant, whatever a host does.
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
  const grants = await readGrants(redis, keys);
  if (!grants.some((grant) => grant.id === id)) throw approvalNotFound(id);
  const answer = checkAnswer({ type: 'revoke', id, answeredBy });
  using wake = await context.feeds.follow(keys.feed);
  const written = await writeAnswer(redis, keys, sealAnswer(context, keys, answer), { confirm: true });
  const holds = AbortSignal.timeout(HOLDS_AFTER_MS);
  while (!holds.aborted) {
    const [confirmed, hosts] = await Promise.all([readConfirmed(redis, keys, written), listHosts(context)]);
    const live = hosts.filter(({ state }) => state !== 'unreachable');
    const isConfirmed = live.length > 0 && live.every((host) => confirmed.includes(host.id));
    if (isConfirmed && !(await isAnswerWaiting(redis, keys, written))) return;
    const again = AbortSignal.any([holds, AbortSignal.timeout(ASK_AGAIN_MS)]);
    await wake.next(again).catch((error: unknown) => {
      if (!again.aborted) throw error;
    });
    // The message may have been lost.
    if (again.aborted && !holds.aborted) await wakeForAnswers(redis, keys, written);
  }
}
