import type { SessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

export interface StoredEvent {
  id: string;
  type: string;
  /** empty for an event of the session itself */
  entryId: string;
  data: Buffer;
}

/** Reads up to `count` events from the id `from` on, or after it if it has the prefix `(`. Throws QUEUE_UNAVAILABLE. */
export async function readStream(
  redis: Redis,
  keys: Pick<SessionKeys, 'stream'>,
  from: string,
  count: number,
): Promise<StoredEvent[]> {
  const reply = await redis.xrangeBuffer(keys.stream, from, '+', 'COUNT', count).catch(throwQueueError);
  return reply.map(([id, fields]) => toStoredEvent(id, fields));
}

/** Reads the event with this id, unless it was trimmed. Throws QUEUE_UNAVAILABLE. */
export async function readStoredEvent(redis: Redis, keys: SessionKeys, id: string): Promise<StoredEvent | undefined> {
  const [found] = await redis.xrangeBuffer(keys.stream, id, id).catch(throwQueueError);
  return found === undefined ? undefined : toStoredEvent(found[0], found[1]);
}

/** Parses the fields `t`, `c` and `d` in the order of the prelude's `emit`. */
function toStoredEvent(id: Buffer, fields: Buffer[]): StoredEvent {
  const [, type, , entryId, , data] = fields;
  return {
    id: id.toString('latin1'),
    type: type?.toString('latin1') ?? '',
    entryId: entryId?.toString('latin1') ?? '',
    data: data ?? Buffer.alloc(0),
  };
}
