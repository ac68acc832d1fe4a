import { type Asker, isAsking, keepWanted, withdrawAskers } from '@shellfleet/mailbox';
import { ATTRIBUTES, approvalKeys, SPANS } from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import type { Feeds } from '../connection/feeds.ts';
import type { FleetContext } from '../connection/fleet-context.ts';
import { inSpan } from '../spans.ts';

export interface WaitContext extends FleetContext {
  readonly tenant: string;
  readonly feeds: Feeds;
}

/**
 * Keeps the question alive until it is answered, expired or withdrawn. Withdraws the question when the signal aborts.
 */
export function waitForAnswer(context: WaitContext, asker: Asker, signal: AbortSignal | undefined): Promise<void> {
  const attributes = () => ({ [ATTRIBUTES.sessionId]: asker.session });
  return inSpan(SPANS.approval, {}, attributes, () => untilAnswered(context, asker, signal));
}

async function untilAnswered(
  { redis, namespace, tenant, feeds }: WaitContext,
  asker: Asker,
  signal: AbortSignal | undefined,
): Promise<void> {
  const keys = approvalKeys(namespace, tenant);
  using wake = await feeds.follow(keys.feed);
  try {
    for (;;) {
      signal?.throwIfAborted();
      await retryWhileRedisIsDown(() => keepWanted(redis, keys, asker), signal);
      if (!(await retryWhileRedisIsDown(() => isAsking(redis, keys, asker), signal))) return;
      await wake.next(signal);
    }
  } catch (error) {
    // If the withdrawal fails, upkeep withdraws the question some seconds later.
    if (signal?.aborted) await withdrawAskers(redis, keys, [asker]).catch(() => {});
    throw error;
  }
}
