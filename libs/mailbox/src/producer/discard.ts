import type { SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { hashIdempotencyKey } from '../read/idempotency.ts';
import { defineMailboxScript, runOnSession } from '../scripts.ts';

const script = defineMailboxScript('producer/discard');

/**
 * Time after which what was discarded has gone. Until then a host may still write about the generation, and a call that
 * was repeated finds it.
 */
const DISCARDED_MS = 5_000;

/**
 * Lets everything expire soon that Redis has of a closed or closing generation. The caller has its Results, and names
 * its entries and idempotency keys. Returns false for a generation that is open, unknown, or not the newest.
 */
export async function discard(
  redis: Redis,
  keys: SessionKeys,
  generation: string,
  { entryIds, idempotencyKeys }: { entryIds: readonly string[]; idempotencyKeys: readonly string[] },
): Promise<boolean> {
  const hashes = idempotencyKeys.map(hashIdempotencyKey);
  const args = [generation, DISCARDED_MS, entryIds.length, ...entryIds, ...hashes];
  return (await runOnSession(redis, script, keys, args)) === 1;
}
