import { TextDecoder } from 'node:util';
import {
  type OmittedBecause,
  type OutputChunk,
  STREAM_NAMES,
  type StoredChunk,
  type StreamName,
} from '@shellfleet/protocol';

export interface RawOffsets {
  stdout: number;
  stderr: number;
}

/**
 * Turns the output events of one command into chunks.
 * CHUNK-1. `text` of all chunks of a stream is the decoding of all its data, wherever they were cut.
 * CHUNK-2. Bytes that are missing between two chunks of a stream are counted in the later one.
 */
export class ChunkAssembler {
  /** The next raw offset of each stream. Undefined after a resumption, until the next event of the stream sets it. */
  readonly #next: { [name in StreamName]: number | undefined };
  readonly #decoders: { [name in StreamName]: TextDecoder } = { stdout: createDecoder(), stderr: createDecoder() };
  readonly #hasText: boolean;
  #seq = 0;
  /** Whether a rule has blocked the output, so that bytes counted from here on are withheld. */
  isBlocked = false;

  constructor(known: { [name in StreamName]: number | undefined } = { stdout: 0, stderr: 0 }, hasText = true) {
    this.#next = { ...known };
    this.#hasText = hasText;
  }

  push(id: string, entry: StoredChunk): OutputChunk {
    const { stream, seq, data } = entry;
    const jumped = Math.max(0, entry.rawFrom - (this.#next[stream] ?? entry.rawFrom));
    const omittedBytes = entry.omittedBytes + jumped;
    this.#next[stream] = entry.rawTo;
    this.isBlocked ||= entry.blocked !== undefined;
    const because = jumped > 0 ? 'trimmed' : this.isBlocked ? 'withheld' : 'over-budget';
    return this.#toChunk(id, stream, seq, data, omittedBytes, because);
  }

  /** Returns the chunk of a piece that only the host has. `omittedBytes`: number of missing bytes before the piece. */
  pushFromHost(id: string, stream: StreamName, data: Uint8Array, omittedBytes: number): OutputChunk {
    return this.#toChunk(id, stream, this.#seq, data, omittedBytes, 'over-budget');
  }

  /** Continues after an event that the reader already has. */
  resumeAfter(entry: StoredChunk): void {
    this.#next[entry.stream] = entry.rawTo;
    if (this.#hasText) this.#decoders[entry.stream].decode(entry.data, { stream: true });
  }

  /** Begins again at offset 0, because the command starts or starts again. */
  restart(): void {
    for (const stream of STREAM_NAMES) {
      this.#next[stream] = 0;
      this.#flush(stream);
    }
  }

  /**
   * Returns the last chunks, after the command's end: the rest of an incomplete character, and a count of missing
   * bytes.
   */
  end(id: string, stored: RawOffsets): OutputChunk[] {
    return STREAM_NAMES.flatMap((stream) => {
      const omittedBytes = Math.max(0, stored[stream] - (this.#next[stream] ?? stored[stream]));
      const text = this.#flush(stream);
      if (omittedBytes === 0 && text === '') return [];
      const chunk = { id, stream, seq: this.#seq++, data: new Uint8Array(), text };
      return [omittedBytes > 0 ? { ...chunk, omittedBytes, omittedBecause: 'trimmed' as const } : chunk];
    });
  }

  #toChunk(
    id: string,
    stream: StreamName,
    seq: number,
    data: Uint8Array,
    omittedBytes: number,
    omittedBecause: OmittedBecause,
  ): OutputChunk {
    this.#seq = seq + 1;
    const text = this.#hasText ? this.#decode(stream, data, omittedBytes > 0) : '';
    return { id, stream, seq, data, text, ...(omittedBytes > 0 ? { omittedBytes, omittedBecause } : {}) };
  }

  #decode(stream: StreamName, data: Uint8Array, isAfterGap: boolean): string {
    const before = isAfterGap ? this.#flush(stream) : '';
    return before + this.#decoders[stream].decode(data, { stream: true });
  }

  #flush(stream: StreamName): string {
    const text = this.#decoders[stream].decode();
    this.#decoders[stream] = createDecoder();
    return text;
  }
}

function createDecoder(): TextDecoder {
  return new TextDecoder('utf-8', { ignoreBOM: true });
}
