import { z } from 'zod';

/** Event types of a session's stream, whose events have the fields `t` (type), `c` (entry id or empty), `d` (data). */
export const EVENT_TYPES = [
  'session.queued',
  'session.opened',
  'session.adopted',
  'host.unreachable',
  'session.restarted',
  'session.lost',
  'session.closed',
  'command.accepted',
  'command.started',
  'command.output',
  'command.completed',
  'approval.requested',
  'approval.answered',
] as const;
export const eventTypeSchema = z.enum(EVENT_TYPES);
export type EventType = (typeof EVENT_TYPES)[number];

/** The output streams of a command. */
export const STREAM_NAMES = ['stdout', 'stderr'] as const;
export type StreamName = (typeof STREAM_NAMES)[number];

/** A piece of a command's output, after redaction. */
export interface OutputChunk {
  /** Position in the session's stream: `output({ after: id })` continues after it. */
  id: string;
  /** The output stream. */
  stream: StreamName;
  /** Number of the chunk, from 0, over both streams of the command. */
  seq: number;
  /** Redacted bytes. */
  data: Uint8Array;
  /** The bytes as UTF-8. If two chunks share a character, its text is in the second chunk. */
  text: string;
  /** Number of bytes that are missing before this chunk. */
  omittedBytes?: number;
  /** Why bytes are missing. Present together with `omittedBytes`. */
  omittedBecause?: OmittedBecause;
}

/**
 * Why output is missing from the stream of its session.
 * - `over-budget`: the command exceeded `output.streamBytes`, or Redis was full. `command.log` may have the bytes.
 * - `withheld`: a rule with the strategy `block` matched. The bytes exist nowhere.
 * - `trimmed`: the stream was trimmed. `command.log` has the bytes that are left.
 */
export type OmittedBecause = 'over-budget' | 'withheld' | 'trimmed';

/** One chunk in the session's stream. `data` represents the raw bytes `rawFrom` to `rawTo` of its output stream. */
export interface StoredChunk {
  stream: StreamName;
  /** Number of the chunk, from 0, over both streams of the command. */
  seq: number;
  rawFrom: number;
  rawTo: number;
  /** Number of raw bytes between `rawFrom` and `data` that the stream does not carry. */
  omittedBytes: number;
  /** Lines of its output stream up to the end of this chunk. */
  lines: number;
  /** Redacted bytes of its output stream before this chunk. This is the offset of the chunk in the full log. */
  offset: number;
  /** Redactions in its output stream up to the end of this chunk, by type. */
  redactions?: Readonly<Record<string, number>>;
  /** Present when a rule has blocked the output, so that no further chunk follows. */
  blocked?: { type: string; reason: 'matched' | 'too-slow' };
  data: Uint8Array;
}

/** Optional fields, as JSON at the end of the header. Few chunks have them. */
const notesSchema = z.strictObject({
  redactions: z.record(z.string(), z.number()).optional(),
  blocked: z.object({ type: z.string(), reason: z.enum(['matched', 'too-slow']) }).optional(),
});
const MOST_HEADER_BYTES = 16_384;

const encoder = new TextEncoder();
const decoder = new TextDecoder('latin1');

/**
 * Encodes a chunk: `<stream: 1 or 2> <seq> <rawFrom> <rawTo> <omittedBytes> <lines> <offset>[ <notes>]\n`, then the
 * bytes.
 */
export function encodeStoredChunk(entry: StoredChunk): Uint8Array {
  const { seq, rawFrom, rawTo, omittedBytes, lines, offset, redactions, blocked, data } = entry;
  const stream = entry.stream === 'stdout' ? 1 : 2;
  const notes = redactions === undefined && blocked === undefined ? '' : ` ${toAscii({ redactions, blocked })}`;
  const header = encoder.encode(`${stream} ${seq} ${rawFrom} ${rawTo} ${omittedBytes} ${lines} ${offset}${notes}\n`);
  const bytes = new Uint8Array(header.byteLength + data.byteLength);
  bytes.set(header);
  bytes.set(data, header.byteLength);
  return bytes;
}

/** Decodes a chunk. Returns undefined for other bytes, because the stream is untrusted input. */
export function decodeStoredChunk(bytes: Uint8Array): StoredChunk | undefined {
  const end = bytes.subarray(0, MOST_HEADER_BYTES).indexOf(10);
  if (end < 0) return undefined;
  const fields = /^([12]) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15})(?: (\{.*\}))?$/.exec(
    decoder.decode(bytes.subarray(0, end)),
  );
  if (fields === null) return undefined;
  const [, stream, seq, rawFrom, rawTo, omittedBytes, lines, offset, json] = fields;
  const notes = json === undefined ? {} : parseNotes(json);
  if (notes === undefined) return undefined;
  return {
    stream: stream === '1' ? 'stdout' : 'stderr',
    seq: Number(seq),
    rawFrom: Number(rawFrom),
    rawTo: Number(rawTo),
    omittedBytes: Number(omittedBytes),
    lines: Number(lines),
    offset: Number(offset),
    ...notes,
    data: bytes.subarray(end + 1),
  };
}

/** Writes JSON in ASCII only, because the header is read byte by byte. */
function toAscii(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function parseNotes(json: string): Pick<StoredChunk, 'redactions' | 'blocked'> | undefined {
  try {
    const { redactions, blocked } = notesSchema.parse(JSON.parse(json));
    return { ...(redactions === undefined ? {} : { redactions }), ...(blocked === undefined ? {} : { blocked }) };
  } catch {
    return undefined;
  }
}
