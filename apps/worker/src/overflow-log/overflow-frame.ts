import { crc32 } from 'node:zlib';
import type { StreamName } from '@shellfleet/protocol';
import type { OverflowPiece } from '../output/output-queue.ts';

// A frame of the overflow log, little-endian: length of the data (u32), length of the counters of redactions (u32),
// CRC-32 of all that follows (u32), then order, rawFrom, rawTo, bytesBefore, newlinesBefore (f64 each: whole numbers to
// 2^53), then the counters as JSON (nothing where there are none), then the data.

export const OVERFLOW_HEADER_BYTES = 52;
const CHECKED_FROM = 12;

/** Frame of the log. `order` counts the frames of both streams. */
export type OverflowFrame = OverflowPiece & { order: number };

/** Encodes a frame in two parts, so that its data is written without a copy. */
export function encodeOverflowFrame(frame: OverflowFrame): [head: Buffer, data: Buffer] {
  const isEmpty = Object.keys(frame.redactions).length === 0;
  const counters = Buffer.from(isEmpty ? '' : JSON.stringify(frame.redactions));
  const head = Buffer.alloc(OVERFLOW_HEADER_BYTES + counters.length);
  const numbers = [frame.order, frame.rawFrom, frame.rawTo, frame.bytesBefore, frame.newlinesBefore];
  for (const [index, number] of numbers.entries()) head.writeDoubleLE(number, CHECKED_FROM + 8 * index);
  counters.copy(head, OVERFLOW_HEADER_BYTES);
  head.writeUInt32LE(frame.data.length, 0);
  head.writeUInt32LE(counters.length, 4);
  head.writeUInt32LE(crc32(frame.data, crc32(head.subarray(CHECKED_FROM))), 8);
  return [head, frame.data];
}

/** Reads from a frame's header how many redacted bytes of its stream precede it. */
export function readBytesBefore(header: Buffer): number {
  return header.readDoubleLE(CHECKED_FROM + 8 * 3);
}

/** Decodes all complete frames from the start. `wholeBytes` is where the first broken or incomplete frame begins. */
export function decodeFrames(stream: StreamName, bytes: Buffer): { frames: OverflowFrame[]; wholeBytes: number } {
  const frames: OverflowFrame[] = [];
  let at = 0;
  while (at + OVERFLOW_HEADER_BYTES <= bytes.length) {
    const dataFrom = at + OVERFLOW_HEADER_BYTES + bytes.readUInt32LE(at + 4);
    const end = dataFrom + bytes.readUInt32LE(at);
    if (end > bytes.length || crc32(bytes.subarray(at + CHECKED_FROM, end)) !== bytes.readUInt32LE(at + 8)) break;
    const number = (index: number) => bytes.readDoubleLE(at + CHECKED_FROM + 8 * index);
    const counters = bytes.toString('utf8', at + OVERFLOW_HEADER_BYTES, dataFrom);
    frames.push({
      stream,
      order: number(0),
      rawFrom: number(1),
      rawTo: number(2),
      bytesBefore: number(3),
      newlinesBefore: number(4),
      // The checksum is right, so this host wrote the counters completely.
      redactions: counters === '' ? {} : (JSON.parse(counters) as Record<string, number>),
      data: bytes.subarray(dataFrom, end),
    });
    at = end;
  }
  return { frames, wholeBytes: at };
}
