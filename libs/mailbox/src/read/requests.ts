import { recordKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Owner } from '../host/owner.ts';

/** Reads the signed cancellation of an entry, or ''. Throws QUEUE_UNAVAILABLE. */
export async function readCancelRequest({ redis, keys }: Owner, entryId: string): Promise<string> {
  return (await redis.hget(recordKey(keys, entryId), 'cancelSigned').catch(throwQueueError)) ?? '';
}

/** Reads whether the generation is closing, and the signed close or ''. Throws QUEUE_UNAVAILABLE. */
export async function readCloseRequest({ redis, keys }: Owner): Promise<{ isClosing: boolean; signed: string }> {
  const [phase, signed] = await redis.hmget(keys.state, 'phase', 'closeSigned').catch(throwQueueError);
  return { isClosing: phase === 'closing', signed: signed ?? '' };
}
