import { callHost } from '@shellfleet/mailbox';
import { hostKeys, ShellfleetError } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';
import { refuseUnknownHost } from './known-host.ts';

export interface DrainOptions {
  /** Whether to withdraw an earlier request. */
  undo?: boolean | undefined;
  /** Time after which the request ends, in ms. */
  forMs?: number | undefined;
}

/**
 * Asks a host to take nothing new, or withdraws the request. The request also holds for later processes of the host.
 */
export async function drainHost(
  context: FleetContext,
  id: string,
  { undo = false, forMs }: DrainOptions = {},
): Promise<void> {
  try {
    await refuseUnknownHost(context, id);
    const { drain } = hostKeys(context.namespace, id);
    if (undo) await context.redis.del(drain);
    else if (forMs === undefined) await context.redis.set(drain, '1');
    else await context.redis.set(drain, '1', 'PX', forMs);
  } catch (error) {
    throw error instanceof ShellfleetError ? error : toQueueError(error);
  }
  // The host reads the request within seconds even if this call, which only tells it earlier, fails.
  await callHost(context.redis, context.namespace, id, { type: 'drain' }).catch(() => {});
}
