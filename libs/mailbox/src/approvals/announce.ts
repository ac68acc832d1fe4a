import type { ApprovalKeys } from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';

const announceScript = defineApprovalsScript('announce');
const putOffScript = defineApprovalsScript('put-off');

/** A question that its claimer announces. */
export interface ClaimedAnnouncement {
  id: string;
  /** How often it was claimed, with this time. */
  attempt: number;
}

/** Claims the question whose announcement is due for the longest time. Nobody else gets it for `leaseMs`. Throws QUEUE_UNAVAILABLE. */
export async function claimAnnouncement(
  redis: Redis,
  keys: ApprovalKeys,
  leaseMs: number,
): Promise<ClaimedAnnouncement | undefined> {
  const reply = await runScript(redis, announceScript, [keys.questions], [keys.prefix, leaseMs]);
  const [id, attempt] = asArray(reply, announceScript.name);
  return id === undefined ? undefined : { id: asString(id), attempt: asNumber(attempt) };
}

/** It was announced, or nobody tries any more. Throws QUEUE_UNAVAILABLE. */
export async function forgetAnnouncement(redis: Redis, keys: ApprovalKeys, id: string): Promise<void> {
  await redis.multi().zrem(keys.unannounced, id).hdel(keys.announcements, id).exec().catch(throwQueueError);
}

/** It is due again after this time, if the question waits still. Throws QUEUE_UNAVAILABLE. */
export async function putOffAnnouncement(redis: Redis, keys: ApprovalKeys, id: string, delayMs: number): Promise<void> {
  await runScript(redis, putOffScript, [keys.questions], [keys.prefix, id, delayMs]);
}
