import { z } from 'zod';

/** What a session's stream can say. Every entry has the fields `t` (type), `c` (entry id, or empty) and `d` (data), in this order. */
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

export interface SessionEvent {
  id: string;
  at: string;
  type: EventType;
  commandId?: string;
  data?: unknown;
}

export type StreamName = 'stdout' | 'stderr';

export interface OutputChunk {
  id: string;
  stream: StreamName;
  seq: number;
  data: Uint8Array;
  text: string;
  /** Bytes that are missing before this chunk: over the stream's budget, or past their time. */
  omittedBytes?: number;
}

/** One piece of output on its way into the stream: `data` stands for the raw bytes `rawFrom` to `rawTo` of its stream. */
export interface OutputEntry {
  stream: StreamName;
  /** Counts the chunks of a command, both streams together, from 0. */
  seq: number;
  rawFrom: number;
  rawTo: number;
  /** Raw bytes before `data`, within this range, that the stream does not carry. */
  omittedBytes: number;
  /** Lines of its stream up to and with this entry. */
  lines: number;
  data: Uint8Array;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('latin1');

/** `<1|2> <seq> <rawFrom> <rawTo> <omittedBytes> <lines>\n` and the bytes, as they are. */
export function encodeOutputEntry(entry: OutputEntry): Uint8Array {
  const stream = entry.stream === 'stdout' ? 1 : 2;
  const header = encoder.encode(
    `${stream} ${entry.seq} ${entry.rawFrom} ${entry.rawTo} ${entry.omittedBytes} ${entry.lines}\n`,
  );
  const bytes = new Uint8Array(header.byteLength + entry.data.byteLength);
  bytes.set(header);
  bytes.set(entry.data, header.byteLength);
  return bytes;
}

/** Undefined when the bytes are no output entry: the stream is untrusted input. */
export function decodeOutputEntry(bytes: Uint8Array): OutputEntry | undefined {
  const end = bytes.indexOf(10);
  if (end < 0 || end > 128) return undefined;
  const fields = /^([12]) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15}) (\d{1,15})$/.exec(
    decoder.decode(bytes.subarray(0, end)),
  );
  if (fields === null) return undefined;
  const [, stream, seq, rawFrom, rawTo, omittedBytes, lines] = fields;
  return {
    stream: stream === '1' ? 'stdout' : 'stderr',
    seq: Number(seq),
    rawFrom: Number(rawFrom),
    rawTo: Number(rawTo),
    omittedBytes: Number(omittedBytes),
    lines: Number(lines),
    data: bytes.subarray(end + 1),
  };
}
