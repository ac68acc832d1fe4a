import { readGeneration, type StoredEvent } from '@shellfleet/mailbox';
import {
  decodeStoredChunk,
  type EventType,
  eventDataSchemas,
  eventTypeSchema,
  fromWireResult,
  type SessionEvent,
  type SessionKeys,
  toCommandId,
  tryJson,
  withStoredAt,
} from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import type { Sealer } from '@shellfleet/sealing';
import { openRequest, openResult, parseWireResult } from '../results/read-result.ts';
import { ChunkAssemblers } from './chunk-assemblers.ts';
import { type Position, type StreamContext, StreamReader } from './stream-reader.ts';

interface OpenerContext {
  readonly sealer: Pick<Sealer, 'open'>;
}

/** Yields all events of one generation of a session, live, from its beginning or after an event's id. */
export async function* followEvents(
  context: StreamContext & OpenerContext,
  keys: SessionKeys,
  generation: string,
  { after, signal, follow = true, text = true }: Position,
): AsyncGenerator<SessionEvent> {
  using wake = await context.feeds.follow(keys.feed);
  const read = <T>(call: () => Promise<T>) =>
    retryWhileRedisIsDown(call, signal, { errorReplies: 'throw', waitBeforeRetry: () => wake.next(signal) });
  const hasEnded = async () => {
    const now = await read(() => readGeneration(context.redis, keys));
    return now?.generation !== generation || now.phase === 'closed';
  };
  // The number of a generation is the time of its beginning, so none of its events has a lower id.
  const reader = new StreamReader(context.redis, keys, after === undefined ? generation : `(${after}`);
  const assemblers = new ChunkAssemblers(after !== undefined, text);
  let ended = false;
  for (;;) {
    signal?.throwIfAborted();
    const page = await read(() => reader.page());
    for (const entry of page) {
      const event = toEvent(context, keys, assemblers, entry);
      if (event === undefined) continue;
      // The event may be that of the previous generation, if it ended in the millisecond in which this generation
      // began.
      if (event.type === 'session.closed' && !(await hasEnded())) continue;
      yield event;
      if (event.type === 'session.closed') return;
    }
    if (page.length > 0) continue;
    if (ended) return;
    ended = await hasEnded();
    if (ended) continue;
    if (!follow) return;
    await wake.next(signal);
  }
}

/** Parses an event. Returns undefined for other data: the stream is untrusted, and newer versions have other types. */
function toEvent(
  context: OpenerContext,
  keys: SessionKeys,
  assemblers: ChunkAssemblers,
  entry: StoredEvent,
): SessionEvent | undefined {
  const known = eventTypeSchema.safeParse(entry.type);
  if (!known.success) return undefined;
  const { id, entryId } = entry;
  const type = known.data;
  const commandId = entryId === '' ? {} : { commandId: toCommandId(keys.session, entryId) };
  const data = toData(context, keys, assemblers, entry, type);
  if (data === undefined) return undefined;
  // The schema of this type has checked the data. The scripts that add an event of a command set its command id.
  return { id, at: new Date(Number(id.split('-')[0])).toISOString(), type, ...commandId, data } as SessionEvent;
}

function toData(
  { sealer }: OpenerContext,
  keys: SessionKeys,
  assemblers: ChunkAssemblers,
  entry: StoredEvent,
  type: EventType,
): unknown {
  const { id, entryId } = entry;
  if (type === 'command.output') {
    const output = decodeStoredChunk(entry.data);
    return output === undefined ? undefined : assemblers.of(entryId).push(id, output);
  }
  const json = entry.data.toString('utf8');
  if (type === 'command.completed') {
    const commandId = toCommandId(keys.session, entryId);
    assemblers.end(entryId);
    const stored = withStoredAt(parseWireResult(json, commandId), id);
    const result = openResult(sealer, keys, entryId, stored);
    return fromWireResult({ commandId, sessionId: keys.session }, result);
  }
  if (type === 'command.started') assemblers.begin(entryId);
  if (type === 'approval.requested') {
    const stored = eventDataSchemas[type].safeParse(tryJson(json)).data;
    return stored && openRequest(sealer, keys, entryId, stored);
  }
  return eventDataSchemas[type].safeParse(tryJson(json)).data;
}
