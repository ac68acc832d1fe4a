import type { LatePosition } from '@shellfleet/mailbox';
import type { OutputEntry, StreamName } from '@shellfleet/protocol';
import type { CleanOutput } from '../output/clean-output.ts';

/** What processes that outlived one entry have printed, until it is stored. */
export class LateEntry {
  /** Came before it was known where it goes on. */
  #unplaced: { stream: StreamName; offset: number; bytes: Uint8Array }[] = [];
  #unplacedBytes = 0;
  #clean: CleanOutput | undefined;
  #position: LatePosition | undefined;
  readonly #heard = { stdout: 0, stderr: 0 };
  readonly #open = new Set<StreamName>();
  #ended = false;

  /** Bytes that are kept in memory. */
  get waitingBytes(): number {
    return this.#unplacedBytes + (this.#clean?.waitingBytes ?? 0);
  }

  /** Nothing more comes. */
  get ended(): boolean {
    return this.#ended;
  }

  get placed(): boolean {
    return this.#position !== undefined;
  }

  /** The stream has been given all that it may carry of the entry. */
  get isOverBudget(): boolean {
    return this.placed && this.#clean === undefined;
  }

  /** `keep` false: there is no room for the bytes, so they are only counted. */
  push(stream: StreamName, offset: number, bytes: Uint8Array, keep: boolean): void {
    this.#open.add(stream);
    this.#ended = false;
    // Two pipes of one entry may both be its stdout; the keeper counts each on its own.
    const from = Math.max(offset, this.#heard[stream]);
    this.#heard[stream] = from + bytes.byteLength;
    if (!keep || this.isOverBudget) return;
    if (this.#clean !== undefined) feed(this.#clean, stream, from, bytes);
    else {
      this.#unplaced.push({ stream, offset: from, bytes: Buffer.from(bytes) });
      this.#unplacedBytes += bytes.byteLength;
    }
  }

  /** No process holds the stream any more. */
  endStream(stream: StreamName): void {
    this.#open.delete(stream);
    this.#ended = this.#open.size === 0;
  }

  end(): void {
    this.#ended = true;
  }

  /** `clean`: the chain of what the stream still carries of the entry; none when that is nothing. */
  place(position: LatePosition, clean: CleanOutput | undefined): void {
    this.#position = position;
    this.#clean = clean;
    for (const stream of STREAMS) {
      this.#heard[stream] = Math.max(this.#heard[stream], position.offsets[stream]);
      if (clean !== undefined) goOnAt(clean, stream, position);
    }
    const unplaced = this.#unplaced;
    this.#unplaced = [];
    this.#unplacedBytes = 0;
    if (clean !== undefined) for (const { stream, offset, bytes } of unplaced) feed(clean, stream, offset, bytes);
  }

  /** What is to be stored next; nothing when all is. */
  release(): OutputEntry[] {
    if (this.#clean === undefined) return [];
    if (this.#ended) this.#clean.end();
    const { entries, overflow } = this.#clean.release();
    if (overflow.length > 0) this.#clean = undefined;
    return entries;
  }

  /** Bytes that the stream will not carry, said with nothing behind them. */
  gaps(): OutputEntry[] {
    const position = this.#position;
    if (position === undefined) return [];
    const gaps = STREAMS.filter((stream) => this.#heard[stream] > position.offsets[stream]);
    return gaps.map((stream, index) => {
      const { [stream]: rawFrom } = position.offsets;
      const rawTo = this.#heard[stream];
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

const STREAMS: readonly StreamName[] = ['stdout', 'stderr'];

function feed(clean: CleanOutput, stream: StreamName, offset: number, bytes: Uint8Array): void {
  const { [stream]: received } = clean.received;
  if (offset > received) clean.lose(stream, offset);
  if (offset + bytes.byteLength > received) clean.push(stream, offset, bytes);
}

/** As if the chain had released what is stored already. Late output stands in no log: its offset follows the raw one. */
function goOnAt(clean: CleanOutput, stream: StreamName, { offsets, seq }: LatePosition): void {
  const { [stream]: rawTo } = offsets;
  const nothing = { omittedBytes: 0, lines: 0, offset: rawTo, data: new Uint8Array() };
  clean.restoreEntry({ stream, seq: seq - 1, rawFrom: 0, rawTo, ...nothing });
}
