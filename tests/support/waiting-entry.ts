import type { Asker } from '@shellfleet/mailbox';
import { type ApprovalKeys, recordKey, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Stores as much of a session and of its entry as tells that the entry waits, and so may still ask. */
export async function storeWaitingEntry(
  redis: Redis,
  { namespace, tenant }: ApprovalKeys,
  asker: Asker,
): Promise<void> {
  const keys = sessionKeys(namespace, tenant, asker.session);
  await redis.hset(keys.state, { phase: 'open', generation: asker.generation });
  await redis.hset(recordKey(keys, asker.entryId), 'state', 'waiting');
}
