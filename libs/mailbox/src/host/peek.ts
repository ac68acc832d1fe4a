import { payloadKey, recordKey } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import { isRunnable } from '../read/session-state.ts';
import { type Entry, toEntry } from './entry.ts';
import type { Owner } from './owner.ts';

export interface Head {
  /** Unstarted entry. */
  entry: Entry;
  /** False for a held head; otherwise it can be started or checked for admission. */
  runnable: boolean;
  /** digest of the admission rules that cleared it, or empty */
  cleared: string;
  /** digest of the admission rules that last held it, or empty */
  heldUnder: string;
}

/** Returns the head of the mailbox without starting it, if there is one. Throws QUEUE_UNAVAILABLE. */
export async function peek({ redis, keys }: Owner): Promise<Head | undefined> {
  const [id, held] = await Promise.all([redis.lindex(keys.queue, 0), redis.hget(keys.state, 'held')]).catch(
    throwQueueError,
  );
  if (id === null) return undefined;
  const [payload, fields] = await Promise.all([
    redis.get(payloadKey(keys, id)),
    redis.hmget(
      recordKey(keys, id),
      'kind',
      'inbox',
      'acceptedAt',
      'retry',
      'starts',
      'first',
      'asked',
      'cleared',
      'held',
    ),
  ]).catch(throwQueueError);
  const [cleared, heldUnder] = fields.slice(7);
  return {
    entry: toEntry(id, payload, fields.slice(0, 7)),
    runnable: isRunnable(id, held),
    cleared: cleared ?? '',
    heldUnder: heldUnder ?? '',
  };
}
