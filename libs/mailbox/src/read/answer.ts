import { answerKey, type SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { throwQueueError } from '../script.ts';

/** The answer of a file operation, sealed; undefined when it has none, or it has expired. Throws QUEUE_UNAVAILABLE. */
export async function readSealedAnswer(redis: Redis, keys: SessionKeys, entryId: string): Promise<string | undefined> {
  return (await redis.get(answerKey(keys, entryId)).catch(throwQueueError)) ?? undefined;
}
