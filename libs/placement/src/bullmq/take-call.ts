import type { FleetKeys } from '@shellfleet/protocol';
import { asArray, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';

const takeScript = definePlacementScript('take-call');
const endScript = definePlacementScript('end-call');

/** Job of a tool call that a host holds. */
export interface HeldCall {
  queue: string;
  id: string;
  /** JSON, not validated */
  data: string;
}

/** Locks the next waiting call of a tool for a host. Throws QUEUE_UNAVAILABLE. */
export async function takeCall(
  redis: Redis,
  fleet: FleetKeys,
  { tool, host, lockMs }: { tool: string; host: string; lockMs: number },
): Promise<HeldCall | undefined> {
  const reply = await runScript(
    redis,
    takeScript,
    [fleet.toolQueues, fleet.toolsNoted],
    [fleet.tools, tool, host, lockMs],
  );
  const [queue, id, data] = asArray(reply, takeScript.name).map(asString);
  return queue === undefined || id === undefined || data === undefined ? undefined : { queue, id, data };
}

/** Removes the job of a call, unless another host holds it by now. Throws QUEUE_UNAVAILABLE. */
export async function endCall(redis: Redis, fleet: FleetKeys, { queue, id }: HeldCall, host: string): Promise<void> {
  const prefix = `${fleet.tools}:${queue}:`;
  await runScript(redis, endScript, [`${prefix}${id}:lock`, `${prefix}active`, `${prefix}${id}`], [host, id]);
}
