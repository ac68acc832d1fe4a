import { toQueueError } from '@shellfleet/mailbox';
import { encodeWakeUp, type HostCall, hostKeys } from '@shellfleet/protocol';
import type { FleetContext } from '../connection/fleet-context.ts';

const CALLS_LENGTH = 10_000;

/** Sends a host a call that must reach a running shell out of order. If the call is lost, the host finds the request in the mailbox. */
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
