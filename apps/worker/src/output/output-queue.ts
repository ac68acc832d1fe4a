import type { StoredChunk, StreamName } from '@shellfleet/protocol';
import { type Blocked, totalOf } from './redactor.ts';
import type { StreamPipeline } from './stream-pipeline.ts';

export const MOST_ENTRY_BYTES = 64 * 1024;

export interface Released {
  chunks: StoredChunk[];
  overflow: OverflowPiece[];
  /** Raw offset of each stream up to which the keeper gets an acknowledgement once this output is stored. */
  upTo: Partial<Record<StreamName, number>>;
}

/** Cleaned output to be stored: as chunks of the session's stream up to the budget, then as overflow pieces. */
export class OutputQueue {
  /** Cleaned bytes that `release` has not returned yet. */
  bytes = 0;
  /** Bytes of the command that the session's stream can still take. */
  bytesLeft: number;
  /** Raw offset of each stream that the chunks cover. */
  readonly #rawInEntries: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  #pieces: Piece[] = [];
  #nextSeq = 0;

  /** Creates a queue. `budget` is how many bytes of both streams together the session's stream takes. */
  constructor(budget: number) {
    this.bytesLeft = budget;
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  /** Adds bytes that the pipeline released. They stand for its raw bytes from `rawReleased` to `rawTo`. */
  push(stream: StreamName, pipeline: StreamPipeline, data: Buffer, newlines: number, rawTo: number): void {
    const inBudget = data.length <= this.bytesLeft;
    this.bytesLeft = inBudget ? this.bytesLeft - data.length : 0;
    this.bytes += data.length;
    const last = this.#pieces.at(-1);
    const continues = last?.stream === stream && last.inBudget === inBudget && last.rawTo === pipeline.rawReleased;
    if (last && continues && last.bytes + data.length <= MOST_ENTRY_BYTES) {
      last.parts.push(data);
      last.bytes += data.length;
      last.newlines += newlines;
      last.rawTo = rawTo;
      last.redactions = pipeline.counts;
      return;
    }
    const { rawReleased: rawFrom, bytes: bytesBefore, newlines: newlinesBefore, counts: redactions } = pipeline;
    const counters = { bytesBefore, newlinesBefore, redactions };
    this.#pieces.push({ stream, inBudget, rawFrom, rawTo, ...counters, parts: [data], bytes: data.length, newlines });
  }

  /** Adds a chunk without data that reports why nothing more of the command is released. */
  pushBlocked(stream: StreamName, pipeline: StreamPipeline, blocked: Blocked): void {
    const { rawReleased: rawFrom, rawReceived: rawTo, bytes: bytesBefore, newlines: newlinesBefore } = pipeline;
    const counters = { bytesBefore, newlinesBefore, redactions: pipeline.counts, bytes: 0, newlines: 0, parts: [] };
    this.#pieces.push({ stream, inBudget: true, rawFrom, rawTo, ...counters, blocked });
  }

  /** Returns about `maxBytes` of the waiting output, in order. */
  release(maxBytes: number): Released {
    const released: Released = { chunks: [], overflow: [], upTo: {} };
    let bytes = 0;
    let count = 0;
    for (; count < this.#pieces.length && bytes < maxBytes; count += 1) {
      const piece = this.#pieces[count]!;
      bytes += piece.bytes;
      if (piece.stream === 'stdout') released.upTo.stdout = piece.rawTo;
      else released.upTo.stderr = piece.rawTo;
      if (piece.inBudget) released.chunks.push(this.#toChunk(piece));
      else released.overflow.push(toOverflow(piece));
    }
    this.#pieces = this.#pieces.slice(count);
    this.bytes -= bytes;
    return released;
  }

  /** Returns a chunk for raw bytes at the end of a stream that no chunk covers, or undefined without such a gap. */
  toClosingChunk(stream: StreamName, pipeline: StreamPipeline): StoredChunk | undefined {
    const { rawReceived: rawTo, newlines: lines, bytes: offset, counts } = pipeline;
    const rawFrom = this.#rawInEntries[stream];
    if (rawTo === rawFrom) return undefined;
    const [seq, data] = [this.#nextSeq++, Buffer.alloc(0)];
    return { stream, seq, rawFrom, rawTo, omittedBytes: rawTo - rawFrom, lines, offset, ...toNotes(counts), data };
  }

  /** Restores, after a restart, a chunk that the session's stream has. */
  restoreChunk({ stream, seq, rawTo, data }: StoredChunk): void {
    this.#nextSeq = seq + 1;
    this.bytesLeft -= data.byteLength;
    this.#rawInEntries[stream] = rawTo;
  }

  /** Marks the budget as used up, after a restart, because the overflow log has output. */
  restoreOverflow(): void {
    this.bytesLeft = 0;
  }

  #toChunk(piece: Piece): StoredChunk {
    const { stream, rawTo, bytesBefore: offset, redactions, blocked } = piece;
    const rawFrom = this.#rawInEntries[stream];
    this.#rawInEntries[stream] = rawTo;
    return {
      ...toNotes(redactions, blocked),
      stream,
      seq: this.#nextSeq++,
      rawFrom,
      rawTo,
      omittedBytes: (blocked === undefined ? piece.rawFrom : rawTo) - rawFrom,
      lines: piece.newlinesBefore + piece.newlines,
      offset,
      data: toBytes(piece),
    };
  }
}

/** Cleaned bytes that wait to be stored: all of them in the session's stream, or all in the overflow log. */
interface Piece {
  stream: StreamName;
  inBudget: boolean;
  rawFrom: number;
  rawTo: number;
  bytesBefore: number;
  newlinesBefore: number;
  parts: Buffer[];
  bytes: number;
  newlines: number;
  redactions: Readonly<Record<string, number>>;
  blocked?: Blocked;
}

/** Piece of the overflow log: cleaned bytes over the budget, with the counters before them. */
export interface OverflowPiece {
  stream: StreamName;
  rawFrom: number;
  rawTo: number;
  bytesBefore: number;
  newlinesBefore: number;
  /** Number of findings of each type in the stream, including this piece. */
  redactions: Readonly<Record<string, number>>;
  data: Buffer;
}

function toOverflow(piece: Piece): OverflowPiece {
  const { stream, rawFrom, rawTo, bytesBefore, newlinesBefore, redactions } = piece;
  return { stream, rawFrom, rawTo, bytesBefore, newlinesBefore, redactions, data: toBytes(piece) };
}

/** Returns the redaction fields of a chunk; none when nothing was found. */
function toNotes(redactions: Readonly<Record<string, number>>, blocked?: Blocked) {
  const notes: { redactions?: Readonly<Record<string, number>>; blocked?: Blocked } = {};
  if (totalOf(redactions) > 0) notes.redactions = redactions;
  if (blocked !== undefined) notes.blocked = blocked;
  return notes;
}

function toBytes({ parts }: Piece): Buffer {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}
