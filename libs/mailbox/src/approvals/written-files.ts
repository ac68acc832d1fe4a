import { type ApprovalKeys, approvalWrittenKey } from '@shellfleet/protocol';
import { retentionOf, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Asker, toAsker } from './ask.ts';

/** The newest ones of a question are kept. */
const MOST_WRITTEN = 100;

/**
 * Adds a file to the question that a held entry asks: it is changed while the question waits. `seal`: gets the id of the question. Nothing is
 * added when the entry asks nothing. Throws QUEUE_UNAVAILABLE.
 */
export async function recordWritten(
  redis: Redis,
  keys: ApprovalKeys,
  asker: Asker,
  seal: (question: string) => string,
): Promise<void> {
  try {
    const [id] = ((await redis.hget(keys.asked, toAsker(asker))) ?? '').split(' ');
    if (!id) return;
    const key = approvalWrittenKey(keys, id);
    const added = redis.multi().rpush(key, seal(id)).ltrim(key, -MOST_WRITTEN, -1);
    await added.pexpire(key, retentionOf(redis, keys.namespace)).publish(keys.feed, id).exec();
  } catch (error) {
    throwQueueError(error);
  }
}
