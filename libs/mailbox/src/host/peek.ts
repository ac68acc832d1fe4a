import { payloadKey, recordKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import { isRunnable } from '../read/session-state.ts';
import { type Entry, toEntry } from './entry.ts';
import type { Owner } from './owner.ts';

export interface Head {
  /** Not started. `startedAt` is now, by the clock of this host. */
  entry: Entry;
  /** It can be started or checked for admission. A held head cannot. */
  runnable: boolean;
  /** digest of the admission rules under which it was cleared, or empty */
  cleared: string;
  /** digest of those under which it was held last, or empty */
  heldUnder: string;
}

/** The head of the mailbox, without starting it; undefined when nothing waits. Throws QUEUE_UNAVAILABLE. */
export async function peek({ redis, keys }: Owner): Promise<Head | undefined> {
  const [id, held] = await Promise.all([redis.lindex(keys.queue, 0), redis.hget(keys.state, 'held')]).catch(
    throwQueueError,
  );
  if (id === null) return undefined;
  const [payload, fields] = await Promise.all([
    redis.get(payloadKey(keys, id)),
    redis.hmget(recordKey(keys, id), 'kind', 'inbox', 'acceptedAt', 'retry', 'starts', 'first', 'cleared', 'held'),
  ]).catch(throwQueueError);
  const [cleared, heldUnder] = fields.slice(6);
  return {
    entry: { ...toEntry(id, payload, fields.slice(0, 6)), startedAt: Date.now() },
    runnable: isRunnable(id, held),
    cleared: cleared ?? '',
    heldUnder: heldUnder ?? '',
  };
}
