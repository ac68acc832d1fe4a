import {
  entryIdSchema,
  type LogChunk,
  type OutputEntry,
  parseOrThrow,
  recordKey,
  type SessionKeys,
  ShellfleetError,
  toCommandId,
} from '@shellfleet/protocol';
import { z } from 'zod';
import type { Producer } from '../producer.ts';
import { parseWireResult } from '../results/read-result.ts';
import { askHost } from '../submit/ask-host.ts';
import { followEntries } from './command-output.ts';
import { type LogRange, LogWindow } from './log-window.ts';

export interface LogOptions extends LogRange {
  signal?: AbortSignal;
  /** true: go on until the command ends; what its stream does not carry comes then. */
  follow?: boolean;
}

const countSchema = z.number('must be a number').int('must be a whole number').min(0, 'must not be negative');
const rangeSchema = z.object({
  stream: z.enum(['stdout', 'stderr'], "must be 'stdout' or 'stderr'").optional(),
  offset: countSchema.optional(),
  length: countSchema.optional(),
});

/**
 * The whole redacted output of a command: what its session's stream carries, then what its host has on its disk, then what its
 * background processes printed late. What is gone is counted. Throws HOST_UNREACHABLE where the host has to be asked and is away, and LOG_EXPIRED when nothing at all is left.
 */
export async function* readLog(
  producer: Producer,
  keys: SessionKeys,
  entryId: string,
  { signal, follow = false, ...range }: LogOptions,
): AsyncGenerator<LogChunk> {
  parseOrThrow(rangeSchema, range, 'COMMAND_INVALID', 'The range of the log');
  const window = new LogWindow(range);
  const commandId = toCommandId(keys.session, entryId);
  /** Where each stream of a command that has ended does, if that is known. */
  let ends: OutputEntry[] = [];
  let host: string | null | undefined;
  let printedBytes = 0;
  let completed: string | undefined;
  for await (const step of followEntries(producer, keys, entryId, { after: undefined, follow, ...only(signal) })) {
    if (window.isFull) return;
    if (step.type === 'restarted') window.restart();
    if (step.type === 'completed' || step.type === 'ended')
      printedBytes = window.streams.reduce((sum, stream) => sum + step.stored[stream], 0);
    if (step.type === 'completed') {
      completed = step.id;
      host = parseWireResult(step.result, commandId).hostId;
      break;
    }
    if (step.type !== 'output') continue;
    // A closing entry counts what the stream does not carry: the host may have it.
    if (!window.streams.includes(step.entry.stream)) continue;
    if (step.entry.data.byteLength === 0) ends = [...ends, step.entry];
    else
      for (const chunk of some(window.push(step.entry.stream, step.entry.offset, step.entry.data)))
        yield { id: step.id, ...chunk };
  }
  const isWhole = host !== undefined && ends.every(({ stream, offset }) => offset <= window.at[stream]);
  if (!isWhole) yield* readFromHost(producer, keys, entryId, window, host, signal);
  for (const { stream, offset } of ends) yield* some(window.push(stream, offset, new Uint8Array()));
  if (!window.hasData && printedBytes + window.at.stdout + window.at.stderr > 0) throw logExpired(commandId);
  yield* window.end();
  if (completed !== undefined) yield* readLate(producer, keys, entryId, window, completed, signal);
}

/** What came behind the terminal event goes on where the log ends. */
async function* readLate(
  producer: Producer,
  keys: SessionKeys,
  entryId: string,
  window: LogWindow,
  after: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<LogChunk> {
  for await (const step of followEntries(producer, keys, entryId, { after, follow: false, ...only(signal) })) {
    if (step.type !== 'output' || !window.streams.includes(step.entry.stream)) continue;
    const { stream, data } = step.entry;
    for (const chunk of some(window.push(stream, window.at[stream], data))) yield { id: step.id, ...chunk };
  }
  yield* window.end();
}

async function* readFromHost(
  producer: Producer,
  keys: SessionKeys,
  entryId: string,
  window: LogWindow,
  known: string | null | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<LogChunk> {
  // While it runs, its record says where.
  const host = known === undefined ? await producer.redis.hget(recordKey(keys, entryId), 'host') : known;
  if (host === null || host === '') return;
  for (let more = true; more && !window.isFull; ) {
    const question = {
      type: 'log' as const,
      entry: entryIdSchema.parse(entryId),
      streams: [...window.streams],
      from: window.wanted,
    };
    const page = await askHost(producer, host, keys, question, { signal });
    for (const { stream, offset, data } of page.pieces)
      yield* some(window.push(stream, offset, Buffer.from(data, 'base64')));
    more = page.more && page.pieces.length > 0;
  }
}

function logExpired(commandId: string): ShellfleetError {
  return new ShellfleetError(
    'LOG_EXPIRED',
    `Nothing is left of the output of ${commandId}: it was trimmed from its session's stream, and its host has removed the rest.`,
    { commandId },
  );
}

const some = <T>(value: T | undefined): T[] => (value === undefined ? [] : [value]);
const only = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });
