import { type ApprovalKeys, approvalWrittenKey } from '@shellfleet/protocol';
import { retentionOf, throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { type Asker, toAsker } from './ask.ts';

/** Number of files that are kept for a question, newest last. */
const MOST_WRITTEN = 100;

/** Adds a changed file to the question of a held entry, if the entry has a question. Throws QUEUE_UNAVAILABLE. */
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
