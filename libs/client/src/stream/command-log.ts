import { readStoredSession } from '@shellfleet/mailbox';
import { parsePlacement } from '@shellfleet/placement';
import {
  entryIdSchema,
  isMovable,
  isShellfleetError,
  type LogChunk,
  parseOrThrow,
  type SessionKeys,
  ShellfleetError,
  STREAM_NAMES,
  type StoredChunk,
  toCommandId,
} from '@shellfleet/protocol';
import { z } from 'zod';
import { hostOfEntry } from '../hosts/host-of-entry.ts';
import { isHostAlive } from '../hosts/is-host-alive.ts';
import type { RequestContext } from '../hosts/request-from-host.ts';
import { requestFromHost } from '../hosts/request-from-host.ts';
import { parseWireResult } from '../results/read-result.ts';
import { type EntryStep, followEntries } from './command-output.ts';
import { type LogRange, LogWindow } from './log-window.ts';
import type { StreamContext } from './stream-reader.ts';

export interface LogContext extends StreamContext, RequestContext {}

/** The range and the end of a reading. */
export interface LogOptions extends LogRange {
  /** Ends the reading with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /**
   * Whether to continue until the command ends, and then with the overflow log.
   * @default false
   */
  follow?: boolean | undefined;
}

const countSchema = z.number('must be a number').int('must be a whole number').min(0, 'must not be negative');
const rangeSchema = z.object({
  stream: z.enum(STREAM_NAMES, "must be 'stdout' or 'stderr'").optional(),
  offset: countSchema.optional(),
  length: countSchema.optional(),
});

/**
 * Yields a command's redacted output: from its session's stream, then from the overflow log. Missing bytes are counted.
 * Throws HOST_UNREACHABLE when the host of the overflow log does not reply, unless it is gone for good, and LOG_EXPIRED
 * when nothing is left.
 */
export async function* readLog(
  context: LogContext,
  keys: SessionKeys,
  entryId: string,
  { signal, follow = false, ...range }: LogOptions,
): AsyncGenerator<LogChunk> {
  parseOrThrow(rangeSchema, range, 'COMMAND_INVALID', 'The range of the log');
  const window = new LogWindow(range);
  const commandId = toCommandId(keys.session, entryId);
  const ask = { context, keys, entryId, window, signal };
  /** Closing events of those output streams that the session's stream does not have completely. */
  let ends: StoredChunk[] = [];
  let hasEnded = false;
  let printedBytes = 0;
  let lastId: string | undefined;

  if (yield* readStream()) return;
  // The command still runs, or its events are gone and only its record is left.
  if (!hasEnded) yield* readFromHost(ask, undefined, readStream);
  if (!window.hasData && printedBytes + window.at.stdout + window.at.stderr > 0) throw logExpired(commandId);
  yield* window.end();

  /** Yields the events after the last event that was read. Returns true if they complete the range. */
  async function* readStream(): AsyncGenerator<LogChunk, boolean> {
    for await (const step of followEntries(context, keys, entryId, { after: lastId, follow, ...only(signal) })) {
      if (window.isFull) return true;
      if (step.type === 'output') lastId = step.id;
      yield* readStep(step);
    }
    return false;
  }

  async function* readStep(step: EntryStep): AsyncGenerator<LogChunk> {
    if (step.type === 'restarted') window.restart();
    if (step.type === 'ended') printedBytes = window.streams.reduce((sum, stream) => sum + step.stored[stream], 0);
    if (step.type === 'completed') {
      hasEnded = true;
      const isWhole = ends.every(({ stream, offset }) => offset <= window.at[stream]);
      if (!isWhole) yield* readFromHost(ask, parseWireResult(step.result, commandId).hostId);
      for (const { stream, offset } of ends) yield* some(window.push(stream, offset, NOTHING));
    }
    if (step.type !== 'output' || !window.streams.includes(step.entry.stream)) return;
    const { stream, offset, omittedBytes, data } = step.entry;
    // Late output has no offset in the log. It is placed after the output from before the command's end.
    const chunk = hasEnded
      ? window.push(stream, window.at[stream] + omittedBytes, data)
      : data.byteLength > 0
        ? window.push(stream, offset, data)
        : undefined;
    if (chunk !== undefined) yield { id: step.id, ...chunk };
    // A closing event counts bytes that are not in the stream. The host may have them.
    if (!hasEnded && data.byteLength === 0) ends = [...ends, step.entry];
  }
}

interface Ask {
  context: LogContext;
  keys: SessionKeys;
  entryId: string;
  window: LogWindow;
  signal: AbortSignal | undefined;
}

/**
 * Yields the overflow log. `readMore` reads new output of the stream first, because the host's pages may continue it.
 */
async function* readFromHost(
  { context, keys, entryId, window, signal }: Ask,
  known: string | null | undefined,
  readMore?: () => AsyncGenerator<LogChunk, unknown>,
): AsyncGenerator<LogChunk> {
  const host = known === undefined ? await hostOfEntry(context.redis, keys, entryId) : known;
  if (!host) return;
  for (let more = true, isFirst = true; more && !window.isFull; isFirst = false) {
    const from = window.wanted;
    const request = { type: 'log' as const, entry: entryIdSchema.parse(entryId), streams: [...window.streams], from };
    const page = await requestFromHost(context, host, keys, request, { signal }).catch(async (error: unknown) => {
      if (isAway(error) && (await isGone(host, keys, context))) return undefined;
      throw error;
    });
    if (page === undefined) return;
    const leavesGap = page.pieces.some(
      ({ stream, offset }, index) =>
        offset > from[stream] && page.pieces.findIndex((piece) => piece.stream === stream) === index,
    );
    if (isFirst && leavesGap && readMore !== undefined) yield* readMore();
    for (const { stream, offset, data } of page.pieces) yield* some(window.push(stream, offset, data));
    more = page.more && page.pieces.length > 0;
  }
}

const isAway = (error: unknown) => isShellfleetError(error) && error.code === 'HOST_UNREACHABLE';

/** Tells whether a host and its disk are gone for good: the workers of sessions that move do not last. */
async function isGone(host: string, keys: SessionKeys, context: LogContext): Promise<boolean> {
  const session = await readStoredSession(context.redis, keys);
  const policy = parsePlacement(session?.placement ?? '')?.policy;
  return policy !== undefined && isMovable(policy) && !(await isHostAlive(context, host));
}

function logExpired(commandId: string): ShellfleetError {
  return new ShellfleetError(
    'LOG_EXPIRED',
    `Nothing is left of the output of ${commandId}: it was trimmed from its session's stream, and its host has removed the rest.`,
    { commandId },
  );
}

const NOTHING = new Uint8Array();
const some = <T>(value: T | undefined): T[] => (value === undefined ? [] : [value]);
const only = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });
