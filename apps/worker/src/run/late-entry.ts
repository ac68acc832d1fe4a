import type { LatePosition } from '@shellfleet/mailbox';
import { STREAM_NAMES, type StoredChunk, type StreamName } from '@shellfleet/protocol';
import type { CleanOutput } from '../output/clean-output.ts';

/** Late output of one entry (printed by its processes after its end) until it is stored. */
export class LateOutputOfEntry {
  /** Output that came before the position of the stored output was known. */
  #unplaced: { stream: StreamName; offset: number; bytes: Uint8Array }[] = [];
  #unplacedBytes = 0;
  #clean: CleanOutput | undefined;
  #position: LatePosition | undefined;
  readonly #received = { stdout: 0, stderr: 0 };
  readonly #open = new Set<StreamName>();
  #ended = false;

  /** Bytes in memory. */
  get waitingBytes(): number {
    return this.#unplacedBytes + (this.#clean?.waitingBytes ?? 0);
  }

  /** Whether no process of the entry prints any more. */
  get ended(): boolean {
    return this.#ended;
  }

  get placed(): boolean {
    return this.#position !== undefined;
  }

  /** Whether the stream stores nothing more of the entry. */
  get isOverBudget(): boolean {
    return this.placed && this.#clean === undefined;
  }

  /** Receives output. Without `keep` the bytes are only counted, because memory is full. */
  push(stream: StreamName, offset: number, bytes: Uint8Array, keep: boolean): void {
    this.#open.add(stream);
    this.#ended = false;
    // An entry can have two pipes as its stdout, which the keeper counts separately.
    const from = Math.max(offset, this.#received[stream]);
    this.#received[stream] = from + bytes.byteLength;
    if (!keep || this.isOverBudget) return;
    if (this.#clean !== undefined) feed(this.#clean, stream, from, bytes);
    else {
      this.#unplaced.push({ stream, offset: from, bytes: Buffer.from(bytes) });
      this.#unplacedBytes += bytes.byteLength;
    }
  }

  /** Reports that the last process has closed the stream. */
  endStream(stream: StreamName): void {
    this.#open.delete(stream);
    this.#ended = this.#open.size === 0;
  }

  end(): void {
    this.#ended = true;
  }

  /** Sets where the stored output ends. `clean` is the chain for the rest of the budget, if any. */
  place(position: LatePosition, clean: CleanOutput | undefined): void {
    this.#position = position;
    this.#clean = clean;
    for (const stream of STREAM_NAMES) {
      this.#received[stream] = Math.max(this.#received[stream], position.offsets[stream]);
      if (clean !== undefined) goOnAt(clean, stream, position);
    }
    const unplaced = this.#unplaced;
    this.#unplaced = [];
    this.#unplacedBytes = 0;
    if (clean !== undefined) for (const { stream, offset, bytes } of unplaced) feed(clean, stream, offset, bytes);
  }

  /** Returns the pieces to store next. */
  release(): StoredChunk[] {
    if (this.#clean === undefined) return [];
    if (this.#ended) this.#clean.end();
    const { chunks, overflow } = this.#clean.release();
    if (overflow.length > 0) this.#clean = undefined;
    return chunks;
  }

  /** Returns pieces without data that count the bytes over the budget. */
  gaps(): StoredChunk[] {
    const position = this.#position;
    if (position === undefined) return [];
    const gaps = STREAM_NAMES.filter((stream) => this.#received[stream] > position.offsets[stream]);
    return gaps.map((stream, index) => {
      const { [stream]: rawFrom } = position.offsets;
      const rawTo = this.#received[stream];
      const seq = position.seq + index;
      return {
        stream,
        seq,
        rawFrom,
        rawTo,
        omittedBytes: rawTo - rawFrom,
        lines: 0,
        offset: rawFrom,
        data: new Uint8Array(),
      };
    });
  }

  stored(position: LatePosition): void {
    this.#position = position;
  }
}

function feed(clean: CleanOutput, stream: StreamName, offset: number, bytes: Uint8Array): void {
  const { [stream]: received } = clean.received;
  if (offset > received) clean.lose(stream, offset);
  if (offset + bytes.byteLength > received) clean.push(stream, offset, bytes);
}

/** Lets the chain continue after the stored output. Late output is in no log, so its offset is the raw offset. */
function goOnAt(clean: CleanOutput, stream: StreamName, { offsets, seq }: LatePosition): void {
  const { [stream]: rawTo } = offsets;
  const nothing = { omittedBytes: 0, lines: 0, offset: rawTo, data: new Uint8Array() };
  clean.restoreChunk({ stream, seq: seq - 1, rawFrom: 0, rawTo, ...nothing });
}
