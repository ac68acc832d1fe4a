import { toQueueError } from '@shellfleet/mailbox';
import { encodeWakeUp, type HostCall, hostKeys } from '@shellfleet/protocol';
import type { Producer } from '../producer.ts';

const CALLS_LENGTH = 10_000;

/** Tells a host what must reach a live shell out of order. The mailbox says the same to a host that does not hear it. */
export async function callHost(producer: Producer, host: string, call: HostCall): Promise<void> {
  const { calls, wakeUps } = hostKeys(producer.namespace, host);
  try {
    await producer.redis.xadd(calls, 'MAXLEN', '~', CALLS_LENGTH, '*', 'd', JSON.stringify(call));
    await producer.redis.publish(wakeUps, encodeWakeUp({ type: 'calls' }));
  } catch (error) {
    throw toQueueError(error);
  }
}

export async function isHostAlive(producer: Producer, host: string): Promise<boolean> {
  try {
    return (await producer.redis.exists(hostKeys(producer.namespace, host).alive)) === 1;
  } catch (error) {
    throw toQueueError(error);
  }
}
