import { type ApprovalKeys, approvalWrittenKey } from '@shellfleet/protocol';
import { retentionOf, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Asker, toAsker } from './ask.ts';

/** Files of one question that are kept: the newest ones. */
const MOST_WRITTEN = 100;

/**
 * Adds a file, which is changed while a held entry waits, to the question of that entry. `seal` gets the id of the
 * question. Adds nothing when the entry asks nothing. Throws QUEUE_UNAVAILABLE.
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
