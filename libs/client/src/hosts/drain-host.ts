import { hostKeys } from '@shellfleet/protocol';
import type { FleetContext } from '../connection/fleet-context.ts';
import { askHost } from './ask-host.ts';

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
  const { redis, namespace } = context;
  const { drain } = hostKeys(namespace, id);
  await askHost(context, id, 'drain', () => {
    if (undo) return redis.del(drain);
    return forMs === undefined ? redis.set(drain, '1') : redis.set(drain, '1', 'PX', forMs);
  });
}
