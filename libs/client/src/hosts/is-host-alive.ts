import { hostKeys } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import type { FleetContext } from '../connection/fleet-context.ts';

export async function isHostAlive(context: FleetContext, host: string): Promise<boolean> {
  try {
    return (await context.redis.exists(hostKeys(context.namespace, host).alive)) === 1;
  } catch (error) {
    throw toQueueError(error);
  }
}
