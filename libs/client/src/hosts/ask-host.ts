import { callHost } from '@shellfleet/mailbox';
import { ShellfleetError } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';
import { refuseUnknownHost } from './known-host.ts';

/** Writes an operator's request to a known host, and tells the host. */
export async function askHost(
  context: FleetContext,
  id: string,
  type: 'drain' | 'cordon',
  write: () => Promise<unknown>,
): Promise<void> {
  try {
    await refuseUnknownHost(context, id);
    await write();
  } catch (error) {
    throw error instanceof ShellfleetError ? error : toQueueError(error);
  }
  // The host reads the request within seconds even if this call, which only tells it earlier, fails.
  await callHost(context.redis, context.namespace, id, { type }).catch(() => {});
}
