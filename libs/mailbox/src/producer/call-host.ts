import { callsKey, encodeWakeUp, hostKeys, type NewHostCall } from '@shellfleet/protocol';
import { runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlainScript } from '../scripts.ts';

const script = definePlainScript('producer/call-host');
const CALLS_LENGTH = 10_000;
/** Expiry of a tenant's calls that no host reads, because it is gone. */
const CALLS_TTL_MS = 3_600_000;

/** Calls a host. If the call is lost, the host finds the request in the mailbox. Throws QUEUE_UNAVAILABLE. */
export async function callHost(redis: Redis, namespace: string, host: string, call: NewHostCall): Promise<void> {
  const { calls, callers, wakeUps } = hostKeys(namespace, host);
  const tenant = tenantOf(call);
  const [stream, list] = tenant === '' ? [calls, ''] : [callsKey(namespace, tenant, host), callers];
  const wakeUp = encodeWakeUp({ type: 'calls' });
  const args = [JSON.stringify(call), CALLS_LENGTH, wakeUps, wakeUp, list, tenant, CALLS_TTL_MS];
  await runScript(redis, script, [stream], args);
}

/** Returns the tenant in whose stream a call belongs. It is empty for a call of an operator. */
const tenantOf = (call: NewHostCall) =>
  'tenant' in call && !('session' in call && call.session === '') ? call.tenant : '';
