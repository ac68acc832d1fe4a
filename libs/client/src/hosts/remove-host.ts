import { hostKeys, ShellfleetError } from '@shellfleet/protocol';
import { retentionOf, toQueueError } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';
import { refuseUnknownHost } from './known-host.ts';

/**
 * Removes a host from the list, and withdraws what operators asked of it. Its last heartbeat stays, because decisions
 * about its sessions need it.
 */
export async function removeHost(context: FleetContext, id: string): Promise<void> {
  const { redis, namespace } = context;
  const { alive, cordon, drain, left } = hostKeys(namespace, id);
  try {
    await refuseUnknownHost(context, id);
    if ((await redis.exists(alive)) === 1) throw isUp(id);
    await redis.set(left, '1', 'PX', retentionOf(redis, namespace));
    await redis.del(cordon, drain);
  } catch (error) {
    throw error instanceof ShellfleetError ? error : toQueueError(error);
  }
}

function isUp(id: string): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `Host ${id} is up. Let it take nothing new with \`shellfleet hosts drain ${id}\`, and stop its worker; then it leaves the list by itself.`,
    { issues: [{ path: 'host', message: 'is up' }] },
  );
}
