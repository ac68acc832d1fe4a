import { recordKey } from '@shellfleet/protocol';
import { type Entry, toTaken } from '../entry.ts';
import { toQueueError } from '../script.ts';
import type { Owner } from './owner.ts';

/** The head of the mailbox, not started and without its payload: what a host needs to end it with an error. */
export async function peek({ redis, keys }: Owner): Promise<Entry | undefined> {
  try {
    const id = await redis.lindex(keys.queue, 0);
    if (id === null) return undefined;
    const [kind, inbox, at] = await redis.hmget(recordKey(keys, id), 'kind', 'inbox', 'at');
    const taken = toTaken([1, id, '', kind, inbox, at]);
    return taken.type === 'empty' ? undefined : { ...taken.entry, startedAt: Date.now() };
  } catch (cause) {
    throw toQueueError(cause);
  }
}
