import {
  decodeOutputEntry,
  eventTypeSchema,
  fromWireResult,
  type SessionEvent,
  type SessionKeys,
  toCommandId,
} from '@shellfleet/protocol';
import type { Producer } from '../producer.ts';
import { parseWireResult } from '../results/read-result.ts';
import { ChunkAssembler } from './chunk-assembler.ts';
import { patiently } from './patiently.ts';
import { type Position, type StreamEntry, StreamReader } from './stream-reader.ts';

/**
 * Everything that happens in one life of a session, live and from its beginning, or after an event's id. Ends with the life.
 * `data` of `command.output` is the chunk, of `command.completed` the Result.
 */
export async function* followEvents(
  producer: Producer,
  keys: SessionKeys,
  generation: string,
  { after, signal, follow = true }: Position,
): AsyncGenerator<SessionEvent> {
  using wake = await producer.feeds.follow(keys.feed);
  const read = <T>(call: () => Promise<T>) => patiently(call, wake, signal);
  const hasEnded = async () => {
    const [life, now] = await read(() => producer.redis.hmget(keys.state, 'life', 'gen'));
    return now !== generation || life === 'closed';
  };
  // A generation is the time at which its life began, so its events have no lower ids.
  const reader = new StreamReader(producer.redis, keys.stream, after === undefined ? generation : `(${after}`);
  const assemblers = new Map<string, ChunkAssembler>();
  let ended = false;
  for (;;) {
    signal?.throwIfAborted();
    const page = await read(() => reader.page());
    for (const entry of page) {
      const event = toEvent(keys, assemblers, entry, after !== undefined);
      if (event === undefined) continue;
      // The life before may have ended in the very millisecond in which this one began.
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

function toEvent(
  keys: SessionKeys,
  assemblers: Map<string, ChunkAssembler>,
  entry: StreamEntry,
  resumed: boolean,
): SessionEvent | undefined {
  const type = eventTypeSchema.safeParse(entry.type);
  // A newer program may say more than this one knows.
  if (!type.success) return undefined;
  const { id, entryId } = entry;
  const commandId = entryId === '' ? undefined : toCommandId(keys.session, entryId);
  const event: SessionEvent = {
    id,
    at: new Date(Number(id.split('-')[0])).toISOString(),
    type: type.data,
    ...(commandId === undefined ? {} : { commandId }),
  };
  if (type.data === 'command.output') {
    const output = decodeOutputEntry(entry.data);
    if (output === undefined) return undefined;
    return { ...event, data: assemblerOf(assemblers, entryId, resumed).push(id, output) };
  }
  if (type.data === 'command.started') assemblers.set(entryId, new ChunkAssembler());
  const json = entry.data.toString('utf8');
  if (type.data !== 'command.completed' || commandId === undefined) return { ...event, data: tryJson(json) };
  assemblers.delete(entryId);
  const wire = parseWireResult(json, commandId);
  return { ...event, data: fromWireResult({ commandId, sessionId: keys.session }, wire) };
}

/** A reader that resumed in the middle of a command has what came before. */
function assemblerOf(assemblers: Map<string, ChunkAssembler>, entryId: string, resumed: boolean): ChunkAssembler {
  let assembler = assemblers.get(entryId);
  if (assembler === undefined) {
    assembler = new ChunkAssembler(resumed ? { stdout: undefined, stderr: undefined } : { stdout: 0, stderr: 0 });
    assemblers.set(entryId, assembler);
  }
  return assembler;
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
