import type { Asker } from '@shellfleet/mailbox';
import { type ApprovalKeys, recordKey, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Stores the fields of a session and of its entry that show that the entry waits, so that it counts as an asker. */
export async function storeWaitingEntry(
  redis: Redis,
  { namespace, tenant }: ApprovalKeys,
  asker: Asker,
): Promise<void> {
  const keys = sessionKeys(namespace, tenant, asker.session);
  await redis.hset(keys.state, { phase: 'open', generation: asker.generation });
  await redis.hset(recordKey(keys, asker.entryId), 'state', 'waiting');
}
