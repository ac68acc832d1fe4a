import { replyKey, type SessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

/** Reads the sealed reply of a file operation, if it exists. Throws QUEUE_UNAVAILABLE. */
export async function readSealedReply(redis: Redis, keys: SessionKeys, entryId: string): Promise<string | undefined> {
  return (await redis.get(replyKey(keys, entryId)).catch(throwQueueError)) ?? undefined;
}

/** Expiry of a reply. Its producer reads it at once, or sends the request again. */
const REPLY_TTL_MS = 60_000;

/** Stores a sealed reply until its producer takes it. */
export async function storeReply(redis: Redis, keys: SessionKeys, request: string, sealed: Buffer): Promise<void> {
  await redis.set(replyKey(keys, request), sealed, 'PX', REPLY_TTL_MS).catch(throwQueueError);
}

/** Reads and removes the sealed reply to a request. Throws QUEUE_UNAVAILABLE. */
export async function takeReply(redis: Redis, keys: SessionKeys, request: string): Promise<Buffer | undefined> {
  return (await redis.getdelBuffer(replyKey(keys, request)).catch(throwQueueError)) ?? undefined;
}
