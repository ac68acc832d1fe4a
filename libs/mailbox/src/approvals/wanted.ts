import { type ApprovalKeys, answeredKey, wantedKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Asker, toAsker } from './ask.ts';

// What is asked about beside a mailbox is kept by its caller alone. Its question lasts as long as the caller waits.

const WANTED_MS = 15_000;

/**
 * Reports that the caller waits for the answer: its question is not withdrawn for some seconds. Throws
 * QUEUE_UNAVAILABLE.
 */
export async function keepWanted(redis: Redis, keys: ApprovalKeys, asker: Asker): Promise<void> {
  await redis.set(wantedKey(keys, toAsker(asker)), '1', 'PX', WANTED_MS).catch(throwQueueError);
}

/** Tells whether this asks a question that is pending, or asked one that was decided. Throws QUEUE_UNAVAILABLE. */
export async function readAsked(
  redis: Redis,
  keys: ApprovalKeys,
  asker: Asker,
): Promise<'asks' | 'decided' | undefined> {
  const name = toAsker(asker);
  const [asks, decided] = await Promise.all([
    redis.hexists(keys.asked, name),
    redis.exists(answeredKey(keys, name)),
  ]).catch(throwQueueError);
  return asks === 1 ? 'asks' : decided === 1 ? 'decided' : undefined;
}
