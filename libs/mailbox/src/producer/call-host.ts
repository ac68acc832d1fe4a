import { encodeWakeUp, type HostCall, hostKeys } from '@shellfleet/protocol';
import { runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlainScript } from '../scripts.ts';

const script = definePlainScript('producer/call-host');
const CALLS_LENGTH = 10_000;

/** Calls a host. If the call is lost, the host finds the request in the mailbox. Throws QUEUE_UNAVAILABLE. */
export async function callHost(redis: Redis, namespace: string, host: string, call: HostCall): Promise<void> {
  const { calls, wakeUps } = hostKeys(namespace, host);
  const args = [JSON.stringify(call), CALLS_LENGTH, wakeUps, encodeWakeUp({ type: 'calls' })];
  await runScript(redis, script, [calls], args);
}
