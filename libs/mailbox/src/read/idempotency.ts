import { createHash } from 'node:crypto';
import { idempotencyKey, type SessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

/** Returns the hash under which a session stores an idempotency key. */
export function hashIdempotencyKey(key: string): string {
  return createHash('sha256').update(key).digest('base64url');
}

/** Reads the entry of an idempotency key, of any generation, and its payload's hash. Throws QUEUE_UNAVAILABLE. */
export async function readIdempotencyKey(
  redis: Redis,
  keys: SessionKeys,
  key: string,
): Promise<{ payloadHash: string; entryId: string } | undefined> {
  const used = await redis.get(idempotencyKey(keys, hashIdempotencyKey(key))).catch(throwQueueError);
  const [payloadHash, entryId] = used?.split(' ') ?? [];
  return payloadHash && entryId ? { payloadHash, entryId } : undefined;
}
