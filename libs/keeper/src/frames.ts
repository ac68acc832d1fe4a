// The protocol between worker and keeper, as bytes, as in wire.h (docs/keeper-protocol.md).
//
// FRAME-1. A frame decodes to what was encoded, however the bytes are cut on their way.
// FRAME-2. On the socket the first malformed frame ends the stream: push() throws, and must not be called again.
// FRAME-3. Over attach (with a sync word) push() does not throw: it skips bytes outside of whole frames with a right
//          checksum, and a frame that was cut short costs no other frame.
import { crc32 } from 'node:zlib';

/** Version of the protocol between worker and keeper. It rises with every change that the other end would misread. */
export const KEEPER_PROTOCOL_VERSION = 7;
/** Oldest version of a keeper with which this code works. A keeper names the oldest of a worker in its HELLO. */
export const OLDEST_KEEPER_PROTOCOL = 7;
export const HEADER_BYTES = 40;
export const SYNC_BYTES = 8;
const CRC_BYTES = 4;
/** Most bytes of a payload to the keeper, such as the script, env and stdin of a START, or the bytes of a FILE_CALL. */
export const MAX_TO_KEEPER = 4 << 20;
export const MAX_FROM_KEEPER = 64 << 10;

export const FrameType = {
  claim: 1,
  start: 2,
  ack: 3,
  resume: 4,
  stop: 5,
  storage: 6,
  close: 7,
  ping: 8,
  input: 9,
  terminalOpen: 10,
  terminalInput: 11,
  terminalResize: 12,
  terminalClose: 13,
  fileCall: 14,
  examine: 15,
  hello: 65,
  output: 66,
  late: 67,
  end: 68,
  refused: 69,
  pong: 70,
  shell: 71,
  inputTaken: 72,
  terminalOutput: 73,
  terminalEnded: 74,
  log: 75,
  fileOutput: 76,
  fileEnded: 77,
  examined: 78,
} as const;

export interface Frame {
  type: number;
  /** 0 stdout, 1 stderr. */
  stream: number;
  flags: number;
  /** Id of the entry, the terminal or the file call: 16 bytes, zeros for none. */
  id: Uint8Array;
  fence: number;
  offset: number;
  payload: Uint8Array;
}

export class MalformedFrame extends Error {
  override name = 'MalformedFrame';
}

const NO_ID = new Uint8Array(16);
const NO_PAYLOAD = new Uint8Array(0);
const NOTHING: Buffer = Buffer.alloc(0);

/** Returns the bytes of a frame, in the form for attach if a sync word is given. `fence` replaces the frame's. */
export function encodeFrame(
  frame: Partial<Frame> & { type: number },
  sync?: Uint8Array,
  fence = frame.fence ?? 0,
): Buffer {
  const payload = frame.payload ?? NO_PAYLOAD;
  const from = sync ? SYNC_BYTES : 0;
  const end = from + HEADER_BYTES + payload.length;
  const bytes = Buffer.allocUnsafe(end + (sync ? CRC_BYTES : 0));
  if (sync) bytes.set(sync);
  bytes.writeUInt32LE(payload.length, from);
  bytes[from + 4] = frame.type;
  bytes[from + 5] = frame.stream ?? 0;
  bytes.writeUInt16LE(frame.flags ?? 0, from + 6);
  bytes.set(frame.id ?? NO_ID, from + 8);
  writeUint64(bytes, fence, from + 24);
  writeUint64(bytes, frame.offset ?? 0, from + 32);
  bytes.set(payload, from + HEADER_BYTES);
  if (sync) bytes.writeUInt32LE(crc32(bytes.subarray(from, end)), end);
  return bytes;
}

export class FrameDecoder {
  readonly #sync: Buffer | undefined;
  readonly #maxPayload: number;
  #rest: Buffer = NOTHING;
  /** Frame whose header has arrived, with the first `length` bytes of it (only on the unix socket). */
  #partial: { bytes: Buffer; length: number } | undefined;
  /** Number of skipped bytes, which were part of no frame (only over attach). */
  skipped = 0;

  constructor(options: { maxPayload: number; sync?: Uint8Array }) {
    this.#maxPayload = options.maxPayload;
    this.#sync = options.sync && Buffer.from(options.sync);
  }

  /** Returns the frames that are complete now. Over the socket, payloads may be views of the input. */
  push(chunk: Uint8Array): Frame[] {
    const input = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (this.#sync === undefined) return this.#finishPartial(input);
    this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, input]) : input;
    return this.#takeSynced(this.#sync);
  }

  /** Completes the frame of an earlier chunk in its own buffer, and takes later frames as views of the input. */
  #finishPartial(input: Buffer): Frame[] {
    const partial = this.#partial;
    if (partial === undefined) {
      this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, input]) : input;
      return this.#takePlain();
    }
    const taken = input.copy(partial.bytes, partial.length);
    partial.length += taken;
    if (partial.length < partial.bytes.length) return [];
    this.#partial = undefined;
    this.#rest = input.subarray(taken);
    return [frameAt(partial.bytes, 0, partial.bytes.length - HEADER_BYTES), ...this.#takePlain()];
  }

  #takePlain(): Frame[] {
    const frames: Frame[] = [];
    let at = 0;
    while (this.#rest.length - at >= HEADER_BYTES) {
      const length = this.#rest.readUInt32LE(at);
      if (length > this.#maxPayload)
        throw new MalformedFrame(`A frame with a payload of ${length} bytes; at most ${this.#maxPayload} are allowed.`);
      if (this.#rest.length - at < HEADER_BYTES + length) {
        const bytes = Buffer.allocUnsafe(HEADER_BYTES + length);
        this.#partial = { bytes, length: this.#rest.copy(bytes, 0, at) };
        at = this.#rest.length;
        break;
      }
      frames.push(frameAt(this.#rest, at, length));
      at += HEADER_BYTES + length;
    }
    // A copy, so that nothing but the frames refers to the input.
    this.#rest = at === this.#rest.length ? NOTHING : Buffer.from(this.#rest.subarray(at));
    return frames;
  }

  #takeSynced(sync: Buffer): Frame[] {
    const frames: Frame[] = [];
    let at = 0;
    for (;;) {
      const found = this.#rest.indexOf(sync, at);
      if (found < 0) {
        at = this.#skipTo(at, Math.max(at, this.#rest.length - (SYNC_BYTES - 1)));
        break;
      }
      at = this.#skipTo(at, found);
      const header = at + SYNC_BYTES;
      const length = this.#rest.length >= header + HEADER_BYTES ? this.#rest.readUInt32LE(header) : undefined;
      const end = length === undefined ? Number.POSITIVE_INFINITY : header + HEADER_BYTES + length;
      if (length !== undefined && length > this.#maxPayload) {
        at = this.#skipTo(at, at + 1);
      } else if (length !== undefined && this.#rest.length >= end + CRC_BYTES) {
        if (crc32(this.#rest.subarray(header, end)) === this.#rest.readUInt32LE(end)) {
          frames.push(frameAt(this.#rest, header, length));
          at = end + CRC_BYTES;
        } else {
          at = this.#skipTo(at, at + 1);
        }
      } else {
        // The sync word is random. So another one inside an incomplete frame begins the next frame: the sender has
        // died.
        const next = this.#rest.indexOf(sync, header);
        if (next < 0) break;
        at = this.#skipTo(at, next);
      }
    }
    this.#rest = this.#rest.subarray(at);
    return frames;
  }

  #skipTo(from: number, to: number): number {
    this.skipped += to - from;
    return to;
  }
}

function frameAt(bytes: Buffer, at: number, length: number): Frame {
  return {
    type: bytes[at + 4]!,
    stream: bytes[at + 5]!,
    flags: bytes.readUInt16LE(at + 6),
    id: bytes.subarray(at + 8, at + 24),
    fence: readUint64(bytes, at + 24),
    offset: readUint64(bytes, at + 32),
    payload: bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length),
  };
}

// Numbers stay below 2^53; two halves are quicker than BigInt.
export function readUint64(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;
}

export function writeUint64(bytes: Buffer, value: number, at: number): void {
  bytes.writeUInt32LE(value % 2 ** 32, at);
  bytes.writeUInt32LE(Math.floor(value / 2 ** 32), at + 4);
}
