import type { SessionKeys } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

/** One entry of a session's stream. */
export interface StreamEntry {
  id: string;
  type: string;
  /** empty when it concerns the session itself */
  entryId: string;
  data: Buffer;
}

/** Up to `count` entries in order. `from`: an id to begin at, or `(` and an id to begin after. Throws QUEUE_UNAVAILABLE. */
export async function readStream(redis: Redis, keys: SessionKeys, from: string, count: number): Promise<StreamEntry[]> {
  const reply = await redis.xrangeBuffer(keys.stream, from, '+', 'COUNT', count).catch(throwQueueError);
  return reply.map(([id, fields]) => toStreamEntry(id, fields));
}

/** The entry with this id; undefined when it was trimmed. Throws QUEUE_UNAVAILABLE. */
export async function readStreamEntry(redis: Redis, keys: SessionKeys, id: string): Promise<StreamEntry | undefined> {
  const [found] = await redis.xrangeBuffer(keys.stream, id, id).catch(throwQueueError);
  return found === undefined ? undefined : toStreamEntry(found[0], found[1]);
}

/** The prelude's `emit` writes `t`, `c` and `d`, in this order. */
function toStreamEntry(id: Buffer, fields: Buffer[]): StreamEntry {
  const [, type, , entryId, , data] = fields;
  return {
    id: id.toString('latin1'),
    type: type?.toString('latin1') ?? '',
    entryId: entryId?.toString('latin1') ?? '',
    data: data ?? Buffer.alloc(0),
  };
}
