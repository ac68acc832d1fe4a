import { type Asker, isAsking, keepWanted, withdrawAskers } from '@shellfleet/mailbox';
import { approvalKeys } from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import type { Feeds } from '../connection/feeds.ts';
import type { FleetContext } from '../connection/fleet-context.ts';

export interface WaitContext extends FleetContext {
  readonly tenant: string;
  readonly feeds: Feeds;
}

/**
 * Resolves when this does not wait for a person any more: somebody answered, nobody did in time, or it is not to be asked about. While it waits,
 * the question is kept: it is withdrawn when this process ends. Rejects with the reason of the signal, and withdraws the question.
 */
export async function waitForAnswer(
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
    // Without it, upkeep withdraws the question some seconds later.
    if (signal?.aborted) await withdrawAskers(redis, keys, [asker]).catch(() => {});
    throw error;
  }
}
