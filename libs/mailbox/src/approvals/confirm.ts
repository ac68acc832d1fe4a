import { type ApprovalKeys, confirmedKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

const KEPT_MS = 10_000;

/** Reports that no start is under way on this host on a grant that this answer, or an earlier one, has revoked. */
export async function confirmAnswer(redis: Redis, keys: ApprovalKeys, answer: string, hostId: string): Promise<void> {
  const key = confirmedKey(keys, answer);
  await redis.multi().sadd(key, hostId).pexpire(key, KEPT_MS).publish(keys.feed, answer).exec().catch(throwQueueError);
}

/** Reads the ids of the hosts that have confirmed an answer. Throws QUEUE_UNAVAILABLE. */
export async function readConfirmed(redis: Redis, keys: ApprovalKeys, answer: string): Promise<string[]> {
  return redis.smembers(confirmedKey(keys, answer)).catch(throwQueueError);
}
