import type { ApprovalKeys } from '@shellfleet/protocol';
import { asArray, asNumber, asString, runScript, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineApprovalsScript } from '../scripts.ts';

const script = defineApprovalsScript('announce');

export interface ClaimedAnnouncement {
  id: string;
  /** Number of claims of this announcement, including this claim. */
  attempt: number;
}

/** Claims, for `leaseMs`, the announcement that has been due longest. Throws QUEUE_UNAVAILABLE. */
export async function claimAnnouncement(
  redis: Redis,
  keys: ApprovalKeys,
  leaseMs: number,
): Promise<ClaimedAnnouncement | undefined> {
  const reply = await runScript(redis, script, [keys.questions], [keys.prefix, leaseMs]);
  const [id, attempt] = asArray(reply, script.name);
  return id === undefined ? undefined : { id: asString(id), attempt: asNumber(attempt) };
}

/** Removes an announcement that was sent or given up. Throws QUEUE_UNAVAILABLE. */
export async function forgetAnnouncement(redis: Redis, keys: ApprovalKeys, id: string): Promise<void> {
  await redis.multi().zrem(keys.unannounced, id).hdel(keys.announcements, id).exec().catch(throwQueueError);
}

/** Makes an announcement due again after a time, if its question still waits. Throws QUEUE_UNAVAILABLE. */
export async function putOffAnnouncement(redis: Redis, keys: ApprovalKeys, id: string, delayMs: number): Promise<void> {
  const [seconds, micros] = await redis.time().catch(throwQueueError);
  const dueAt = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000) + delayMs;
  await redis.zadd(keys.unannounced, 'XX', dueAt, id).catch(throwQueueError);
}
