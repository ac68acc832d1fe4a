import { TextDecoder } from 'node:util';
import { type LogChunk, STREAM_NAMES, type StreamName } from '@shellfleet/protocol';

/** A part of a log. */
export interface LogRange {
  /**
   * Stream to read.
   * @default both, in the order in which the host received them
   */
  stream?: StreamName | undefined;
  /**
   * Redacted bytes to skip, of the stream or of both together.
   * @default 0
   */
  offset?: number | undefined;
  /**
   * Greatest number of redacted bytes to return.
   * @default no limit
   */
  length?: number | undefined;
}

/**
 * Cuts a range out of a log that comes piece by piece, with gaps.
 * LOGWINDOW-1. `offset` counts missing bytes as well, so a range does not depend on which bytes are still stored.
 * LOGWINDOW-2. `text` of all chunks of a stream is the decoding of all its data, wherever they were cut.
 */
export class LogWindow {
  /** Redacted bytes of each stream before the next piece, including missing bytes. */
  readonly at: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  /** True when any data was pushed, whether inside the range or outside of it. */
  hasData = false;
  readonly #range: { offset: number; length: number; stream: StreamName | undefined };
  #decoders: Partial<Record<StreamName, TextDecoder>> = {};

  constructor({ stream, offset = 0, length = Number.POSITIVE_INFINITY }: LogRange) {
    this.#range = { offset, length, stream };
  }

  get isFull(): boolean {
    return this.#position >= this.#range.offset + this.#range.length;
  }

  get streams(): readonly StreamName[] {
    return this.#range.stream === undefined ? STREAM_NAMES : [this.#range.stream];
  }

  /** Offsets from which a host is asked for output. If one stream is read, nothing before the range is needed. */
  get wanted(): Record<StreamName, number> {
    const { stream, offset } = this.#range;
    if (stream === undefined) return { ...this.at };
    return { ...this.at, [stream]: Math.max(this.at[stream], offset) };
  }

  /** Adds a piece at `offset` of its stream. Returns undefined if it and the gap before it are outside the range. */
  push(stream: StreamName, offset: number, data: Uint8Array): LogChunk | undefined {
    if (!this.streams.includes(stream)) return undefined;
    this.hasData ||= data.byteLength > 0;
    const omittedBytes = this.#advance(stream, offset - this.at[stream]).wanted;
    const known = Math.max(0, this.at[stream] - offset);
    const { before, wanted } = this.#advance(stream, data.byteLength - known);
    if (omittedBytes === 0 && wanted === 0) return undefined;
    const from = known + before;
    const part = data.subarray(from, from + wanted);
    const text = (omittedBytes > 0 ? this.#flush(stream) : '') + this.#decoder(stream).decode(part, { stream: true });
    return { stream, offset: offset + from, data: part, text, ...(omittedBytes > 0 ? { omittedBytes } : {}) };
  }

  /** Returns the replacements of incomplete characters at the ends of streams. */
  end(): LogChunk[] {
    return this.streams.flatMap((stream) => {
      const text = this.#flush(stream);
      return text === '' ? [] : [{ stream, offset: this.at[stream], data: new Uint8Array(), text }];
    });
  }

  /** Begins again at offset 0, because the command runs again. */
  restart(): void {
    this.at.stdout = 0;
    this.at.stderr = 0;
    this.#decoders = {};
  }

  get #position(): number {
    const { stream } = this.#range;
    return stream === undefined ? this.at.stdout + this.at.stderr : this.at[stream];
  }

  /** Advances by `bytes`. Returns how many of them are before the range, and how many are inside the range. */
  #advance(stream: StreamName, bytes: number): { before: number; wanted: number } {
    if (bytes <= 0) return { before: 0, wanted: 0 };
    const { offset, length } = this.#range;
    const from = this.#position;
    const before = Math.min(bytes, Math.max(0, offset - from));
    const wanted = Math.max(0, Math.min(from + bytes, offset + length) - (from + before));
    this.at[stream] += bytes;
    return { before, wanted };
  }

  #decoder(stream: StreamName): TextDecoder {
    this.#decoders[stream] ??= new TextDecoder('utf-8', { ignoreBOM: true });
    return this.#decoders[stream];
  }

  #flush(stream: StreamName): string {
    const text = this.#decoders[stream]?.decode() ?? '';
    delete this.#decoders[stream];
    return text;
  }
}
