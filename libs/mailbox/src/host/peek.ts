import { recordKey } from '@shellfleet/protocol';
import { type Entry, toTaken } from '../entry.ts';
import { isRunnable } from '../read/session-state.ts';
import { throwQueueError } from '../script.ts';
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
  const fields = await redis
    .hmget(recordKey(keys, id), 'payload', 'kind', 'inbox', 'acceptedAt', 'cleared', 'retry', 'held', 'starts', 'first')
    .catch(throwQueueError);
  const [payload, kind, inbox, acceptedAt, cleared, retry, heldUnder, starts, first] = fields;
  const taken = toTaken([1, id, payload, kind, inbox, acceptedAt, 0, 0, 0, 0, retry, '', 0, '', starts ?? 1, first]);
  if (taken.type === 'empty') return undefined;
  return {
    entry: { ...taken.entry, startedAt: Date.now() },
    runnable: isRunnable(id, held),
    cleared: cleared ?? '',
    heldUnder: heldUnder ?? '',
  };
}
