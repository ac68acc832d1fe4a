import { toQueueError } from '@shellfleet/mailbox';
import { encodeWakeUp, type HostCall, hostKeys } from '@shellfleet/protocol';
import type { FleetContext } from '../connection/fleet-context.ts';

const CALLS_LENGTH = 10_000;

/** Tells a host what must reach a live shell out of order. The mailbox says the same to a host that does not hear it. */
export async function callHost(context: FleetContext, host: string, call: HostCall): Promise<void> {
  const { calls, wakeUps } = hostKeys(context.namespace, host);
  try {
    await context.redis.xadd(calls, 'MAXLEN', '~', CALLS_LENGTH, '*', 'd', JSON.stringify(call));
    await context.redis.publish(wakeUps, encodeWakeUp({ type: 'calls' }));
  } catch (error) {
    throw toQueueError(error);
  }
}

export async function isHostAlive(context: FleetContext, host: string): Promise<boolean> {
  try {
    return (await context.redis.exists(hostKeys(context.namespace, host).alive)) === 1;
  } catch (error) {
    throw toQueueError(error);
  }
}
