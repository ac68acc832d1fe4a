import { answerKey, type SessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

/** Reads the sealed answer of a file operation, if it exists. Throws QUEUE_UNAVAILABLE. */
export async function readSealedAnswer(redis: Redis, keys: SessionKeys, entryId: string): Promise<string | undefined> {
  return (await redis.get(answerKey(keys, entryId)).catch(throwQueueError)) ?? undefined;
}

/** Expiry of a reply. Its producer reads it at once, or sends the request again. */
const ANSWER_TTL_MS = 60_000;

/** Stores a sealed reply until its producer takes it. */
export async function storeAnswer(redis: Redis, keys: SessionKeys, question: string, sealed: string): Promise<void> {
  await redis.set(answerKey(keys, question), sealed, 'PX', ANSWER_TTL_MS).catch(throwQueueError);
}

/** Reads and removes the sealed reply to a request. Throws QUEUE_UNAVAILABLE. */
export async function takeAnswer(redis: Redis, keys: SessionKeys, question: string): Promise<string | undefined> {
  return (await redis.getdel(answerKey(keys, question)).catch(throwQueueError)) ?? undefined;
}
