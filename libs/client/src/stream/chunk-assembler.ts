import { TextDecoder } from 'node:util';
import {
  type OmittedBecause,
  type OutputChunk,
  type OutputEntry,
  STREAM_NAMES,
  type StreamName,
} from '@shellfleet/protocol';

/** Raw bytes of each stream that are stored. */
export interface RawOffsets {
  stdout: number;
  stderr: number;
}

/**
 * Turns the output entries of one command into chunks.
 * CHUNK-1. `text` of all chunks of a stream is the decoding of all its data, regardless of where the chunks were cut.
 * CHUNK-2. Bytes that are missing between two chunks of a stream are counted in the later one.
 */
export class ChunkAssembler {
  /** The raw offset that comes next. Undefined after a resumption: it is taken from the next entry of the stream. */
  readonly #next: { [name in StreamName]: number | undefined };
  readonly #decoders: { [name in StreamName]: TextDecoder } = { stdout: createDecoder(), stderr: createDecoder() };
  #seq = 0;
  /** A rule has blocked the output: what is counted from here on is withheld. */
  isBlocked = false;

  constructor(known: { [name in StreamName]: number | undefined } = { stdout: 0, stderr: 0 }) {
    this.#next = { ...known };
  }

  push(id: string, entry: OutputEntry): OutputChunk {
    const { stream, seq, data } = entry;
    const jumped = Math.max(0, entry.rawFrom - (this.#next[stream] ?? entry.rawFrom));
    const omittedBytes = entry.omittedBytes + jumped;
    this.#next[stream] = entry.rawTo;
    this.isBlocked ||= entry.blocked !== undefined;
    const because = jumped > 0 ? 'trimmed' : this.isBlocked ? 'withheld' : 'over-budget';
    return this.#toChunk(id, stream, seq, data, omittedBytes, because);
  }

  /** A piece that the stream does not have. `omittedBytes` before it are gone. */
  pushFromHost(id: string, stream: StreamName, data: Uint8Array, omittedBytes: number): OutputChunk {
    return this.#toChunk(id, stream, this.#seq, data, omittedBytes, 'over-budget');
  }

  /** Continues after an entry that the reader already has. */
  resumeAfter(entry: OutputEntry): void {
    this.#next[entry.stream] = entry.rawTo;
    this.#decoders[entry.stream].decode(entry.data, { stream: true });
  }

  /** The command starts, for the first time or again: its offsets begin at 0. */
  restart(): void {
    for (const stream of STREAM_NAMES) {
      this.#next[stream] = 0;
      this.#flush(stream);
    }
  }

  /** The last chunks after the end of the command: an incomplete character, and missing bytes that no chunk follows. */
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
    const before = omittedBytes > 0 ? this.#flush(stream) : '';
    const text = before + this.#decoders[stream].decode(data, { stream: true });
    return { id, stream, seq, data, text, ...(omittedBytes > 0 ? { omittedBytes, omittedBecause } : {}) };
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
