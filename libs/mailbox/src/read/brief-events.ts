import type { SessionKeys } from '@shellfleet/protocol';
import { runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlainScript } from '../scripts.ts';

const script = definePlainScript('read/brief-events');

/** An event without what is large in it. */
export interface BriefEvent {
  id: string;
  type: string;
  /** empty for an event of the session itself */
  entryId: string;
  /** JSON, or the outcome of a `command.completed` */
  data: string;
}

export interface BriefEvents {
  events: BriefEvent[];
  /** Id of the last entry of the stream that was read, if any. */
  last: string | undefined;
  /** Whether the stream may have further entries. */
  more: boolean;
}

/** Reads the events of a session after an id, without output and Results. Throws QUEUE_UNAVAILABLE. */
export async function readBriefEvents(
  redis: Redis,
  keys: SessionKeys,
  after: string,
  count: number,
): Promise<BriefEvents> {
  const reply = await runScript(redis, script, [keys.stream], [keys.prefix, after, count]);
  const [last, read, fields] = reply as [string, number, string[]];
  const events: BriefEvent[] = [];
  for (let at = 0; at < fields.length; at += 4) {
    const [id = '', type = '', entryId = '', data = ''] = fields.slice(at, at + 4);
    events.push({ id, type, entryId, data });
  }
  return { events, last: last === '' ? undefined : last, more: read === count };
}
