import { type Approval, approvalKeys } from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import type { ApprovalsContext } from './approvals-context.ts';
import { listApprovals, readEnded } from './list-approvals.ts';

export async function* watchApprovals(
  context: ApprovalsContext,
  signal: AbortSignal | undefined,
): AsyncGenerator<Approval> {
  signal?.throwIfAborted();
  using wake = await context.feeds.follow(approvalKeys(context.namespace, context.tenant).feed);
  const read = <T>(call: () => Promise<T>) =>
    retryWhileRedisIsDown(call, signal, { errorReplies: 'throw', waitBeforeRetry: () => wake.next(signal) });
  let known = new Map<string, Approval>();
  for (;;) {
    const pending = await read(() => listApprovals(context, {}));
    const now = new Map(pending.map((approval) => [approval.id, approval]));
    for (const approval of pending) {
      if (JSON.stringify(known.get(approval.id)) !== JSON.stringify(approval)) yield approval;
    }
    for (const approval of known.values()) {
      if (!now.has(approval.id)) yield await read(() => readEnded(context, approval));
    }
    known = now;
    await wake.next(signal);
  }
}
