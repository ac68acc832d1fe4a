import { type EntryRecord, readRecord, readStoredEvent, type StoredEvent } from '@shellfleet/mailbox';
import {
  decodeStoredChunk,
  type OutputChunk,
  type SessionKeys,
  type StoredChunk,
  toCommandId,
} from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { resultExpired } from '../results/read-result.ts';
import { ChunkAssembler, type RawOffsets } from './chunk-assembler.ts';
import { SharedReads } from './shared-reads.ts';
import type { StreamContext } from './stream-reader.ts';
import { isBefore, type Position, StreamReader } from './stream-reader.ts';

// READ-1. A reader that resumes at the id of a chunk receives the same bytes as one that never stopped.
// READ-2. A reader holds one page, and reads the next when the consumer has taken it. Nothing else is buffered.
// READ-3. Missing bytes, trimmed or never in the stream, are counted in the next chunk of their stream, or at the end.
// READ-4. A reader that follows the command ends with it. One that starts later also receives the stored late output.

/** Yields the output of one command, live, from the beginning or after a chunk's id, to its terminal event (READ-4). */
export async function* followOutput(
  context: StreamContext,
  keys: SessionKeys,
  entryId: string,
  position: Position,
): AsyncGenerator<OutputChunk> {
  const { text } = position;
  let assembler = new ChunkAssembler(undefined, text);
  for await (const step of followEntries(context, keys, entryId, position)) {
    if (step.type === 'resumed') assembler = toAssembler(step.last, text);
    else if (step.type === 'restarted') assembler.restart();
    else if (step.type === 'output') yield assembler.push(step.id, step.entry);
    else if (step.type === 'ended') yield* assembler.end(step.id, step.stored);
  }
}

export type EntryStep =
  /**
   * The reader resumes after the event `last`, which is undefined if it is gone, and null if it is no output of the
   * command.
   */
  | { type: 'resumed'; last: StoredChunk | null | undefined }
  | { type: 'restarted' }
  | { type: 'output'; id: string; entry: StoredChunk }
  /** The command's terminal event was read, with the Result as JSON. Output after this step is late output. */
  | { type: 'completed'; result: string }
  /** The command runs, and everything that is stored was read. A call of `wake` causes another step of this type. */
  | { type: 'idle'; wake(): void }
  | { type: 'ended'; id: string; stored: RawOffsets };

export async function* followEntries(
  context: StreamContext,
  keys: SessionKeys,
  entryId: string,
  { after, signal, follow = true, reportsIdle = false }: Position & { reportsIdle?: boolean },
): AsyncGenerator<EntryStep> {
  signal?.throwIfAborted();
  using wake = await context.feeds.follow(keys.feed);
  const read = <T>(call: () => Promise<T>) =>
    retryWhileRedisIsDown(call, signal, { errorReplies: 'throw', waitBeforeRetry: () => wake.next(signal) });
  const reads = SharedReads.of(context.redis);
  const look = async () => {
    const found = await read(() => reads.record(keys, entryId));
    if (found === undefined) throw resultExpired(toCommandId(keys.session, entryId));
    return found;
  };

  let record = await look();
  while (record.state === 'waiting') {
    if (!follow) return;
    await wake.next(signal);
    record = await look();
  }
  if (record.startedAt === undefined) return;
  const late = record.state === 'ended' ? record.late : undefined;

  const start = `${record.startedAt}-0`;
  const resumes = after !== undefined && !isBefore(after, start);
  if (resumes) yield { type: 'resumed', last: await read(() => readStoredChunk(context.redis, keys, entryId, after)) };
  const reader = new StreamReader(context.redis, keys, resumes ? `(${after}` : start);
  let lastId = resumes ? after : start;
  let ended = false;
  for (;;) {
    signal?.throwIfAborted();
    const page = await read(() => reader.page());
    for (const entry of page) {
      if (entry.entryId !== entryId) continue;
      lastId = entry.id;
      if (entry.type === 'command.started') yield { type: 'restarted' };
      if (entry.type === 'command.completed') {
        yield { type: 'completed', result: entry.data.toString('utf8') };
        if (late === undefined) return yield { type: 'ended', id: entry.id, stored: (await look()).stored };
      }
      const output = entry.type === 'command.output' ? decodeOnce(entry) : undefined;
      if (output !== undefined) yield { type: 'output', id: entry.id, entry: output };
      if (entry.id === late?.id) return yield { type: 'ended', id: entry.id, stored: late.stored };
    }
    if (page.length > 0) continue;
    if (ended) {
      // The terminal event was trimmed, or the reader resumed after it.
      yield { type: 'ended', id: lastId, stored: (late ?? record).stored };
      return;
    }
    record = await look();
    ended = record.state === 'ended';
    if (ended) continue;
    if (!follow) return;
    if (reportsIdle) yield { type: 'idle', wake: wake.hint };
    await wake.next(signal);
  }
}

const decoded = new WeakMap<StoredEvent, StoredChunk | undefined>();

/** Decodes the output in an event, once for all readers that share the event. */
function decodeOnce(event: StoredEvent): StoredChunk | undefined {
  if (!decoded.has(event)) decoded.set(event, decodeStoredChunk(event.data));
  return decoded.get(event);
}

/** Reads the event of a chunk. Returns undefined when it is gone, null when it is no output of this command. */
async function readStoredChunk(redis: Redis, keys: SessionKeys, entryId: string, id: string) {
  const entry = await readStoredEvent(redis, keys, id);
  if (entry === undefined) return undefined;
  if (entry.entryId !== entryId || entry.type !== 'command.output') return null;
  return decodeStoredChunk(entry.data) ?? null;
}

/** Returns the assembler for a reader that has received everything up to `last`. */
function toAssembler(last: StoredChunk | null | undefined, hasText: boolean | undefined): ChunkAssembler {
  // The position of the reader is unknown. The count of missing bytes starts at the beginning, so it is never too
  // small.
  if (last === undefined) return new ChunkAssembler(undefined, hasText);
  const assembler = new ChunkAssembler({ stdout: undefined, stderr: undefined }, hasText);
  if (last !== null) assembler.resumeAfter(last);
  return assembler;
}

/** Reads the record of an entry. Throws RESULT_EXPIRED if it is gone. */
export async function findRecord(redis: Redis, keys: SessionKeys, entryId: string): Promise<EntryRecord> {
  const record = await readRecord(redis, keys, entryId);
  if (record === undefined) throw resultExpired(toCommandId(keys.session, entryId));
  return record;
}
