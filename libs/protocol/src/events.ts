import { z } from 'zod';

/**
 * The event types of a session's stream. Every entry has the fields
 * `t` (type), `c` (entry id, or empty) and `d` (data), in this order.
 */
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
  /** Its place in the session's stream: `output({ after: id })` continues behind it. */
  id: string;
  /** The stream that it is a part of. */
  stream: StreamName;
  /** Counts the chunks of a command, both streams together, from 0. */
  seq: number;
  /** Its bytes. */
  data: Uint8Array;
  /** Its bytes as UTF-8. A character that was cut between two chunks is in the second one. */
  text: string;
  /** Number of bytes that are missing before this chunk. */
  omittedBytes?: number;
  /** Why they are missing. Present together with `omittedBytes`. */
  omittedBecause?: OmittedBecause;
}

/**
 * Why output is missing from the stream of its session.
 * - `over-budget`: the command has printed more than `output.streamBytes`,
 *   or Redis was full. `command.log` may have the bytes.
 * - `withheld`: a rule with the strategy `block` has matched. No one has them.
 * - `trimmed`: the stream had them, and was trimmed since. `command.log` has what is left.
 */
export type OmittedBecause = 'over-budget' | 'withheld' | 'trimmed';

/**
 * One piece of output in the session's stream. `data` represents
 * the raw bytes `rawFrom` to `rawTo` of its output stream.
 */
export interface OutputEntry {
  stream: StreamName;
  /** Counts the chunks of a command, both streams together, from 0. */
  seq: number;
  rawFrom: number;
  rawTo: number;
  /** Raw bytes before `data`, within this range, that the stream does not carry. */
  omittedBytes: number;
  /** Number of lines of its output stream so far, this entry included. */
  lines: number;
  /** Number of redacted bytes of its output stream before this entry: its offset in the full log. */
  offset: number;
  /** Number of redactions in its output stream so far, this entry included, by type. */
  redactions?: Readonly<Record<string, number>>;
  /** Set when a rule has blocked the output: no output of the command follows. */
  blocked?: { type: string; reason: 'matched' | 'too-slow' };
  data: Uint8Array;
}

/** Optional fields, as JSON at the end of the header. Few entries have them. */
const notesSchema = z.strictObject({
  redactions: z.record(z.string(), z.number()).optional(),
  blocked: z.object({ type: z.string(), reason: z.enum(['matched', 'too-slow']) }).optional(),
});
const MOST_HEADER_BYTES = 16_384;

const encoder = new TextEncoder();
const decoder = new TextDecoder('latin1');

/**
 * Encodes an entry as `<1|2> <seq> <rawFrom> <rawTo> <omittedBytes>
 * <lines> <offset>[ <notes>]\n`, then the bytes, unchanged.
 */
export function encodeOutputEntry(entry: OutputEntry): Uint8Array {
  const { seq, rawFrom, rawTo, omittedBytes, lines, offset, redactions, blocked, data } = entry;
  const stream = entry.stream === 'stdout' ? 1 : 2;
  const notes = redactions === undefined && blocked === undefined ? '' : ` ${toAscii({ redactions, blocked })}`;
  const header = encoder.encode(`${stream} ${seq} ${rawFrom} ${rawTo} ${omittedBytes} ${lines} ${offset}${notes}\n`);
  const bytes = new Uint8Array(header.byteLength + data.byteLength);
  bytes.set(header);
  bytes.set(data, header.byteLength);
  return bytes;
}

/** Returns undefined when the bytes are no output entry: the stream is untrusted input. */
export function decodeOutputEntry(bytes: Uint8Array): OutputEntry | undefined {
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

/** JSON in ASCII only, because the header is read byte by byte. */
function toAscii(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function parseNotes(json: string): Pick<OutputEntry, 'redactions' | 'blocked'> | undefined {
  try {
    const { redactions, blocked } = notesSchema.parse(JSON.parse(json));
    return { ...(redactions === undefined ? {} : { redactions }), ...(blocked === undefined ? {} : { blocked }) };
  } catch {
    return undefined;
  }
}
