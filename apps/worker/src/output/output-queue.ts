import type { OutputEntry, StreamName } from '@shellfleet/protocol';
import { type OverflowPiece, type Piece, toBytes, toNotes, toOverflow } from './piece.ts';
import type { Blocked } from './redactor.ts';
import type { StreamPipeline } from './stream-pipeline.ts';

export const MOST_ENTRY_BYTES = 64 * 1024;

/** Output that is to be stored next, in order. */
export interface Released {
  entries: OutputEntry[];
  overflow: OverflowPiece[];
  /** Raw bytes of each stream that may be acknowledged to the keeper once this is stored. */
  upTo: Partial<Record<StreamName, number>>;
}

/**
 * Cleaned output that waits to be stored: within the budget as entries of the session's stream, beyond it as pieces of
 * the host's log.
 */
export class OutputQueue {
  /** Cleaned bytes that `release` did not give out yet. */
  bytes = 0;
  /** Bytes that the stream still carries of the command. */
  bytesLeft: number;
  /** Raw bytes of each stream that entries account for. */
  readonly #rawInEntries: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  #pieces: Piece[] = [];
  #nextSeq = 0;

  /** Takes the number of bytes that the session's stream carries of the command, stdout and stderr together. */
  constructor(budget: number) {
    this.bytesLeft = budget;
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  /** Adds bytes that the pipeline released. `rawTo`: they stand for its raw bytes from `rawReleased` up to here. */
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

  /** Adds an entry without data that reports why nothing more of the command is given out. */
  pushBlocked(stream: StreamName, pipeline: StreamPipeline, blocked: Blocked): void {
    const { rawReleased: rawFrom, rawReceived: rawTo, bytes: bytesBefore, newlines: newlinesBefore } = pipeline;
    const counters = { bytesBefore, newlinesBefore, redactions: pipeline.counts, bytes: 0, newlines: 0, parts: [] };
    this.#pieces.push({ stream, inBudget: true, rawFrom, rawTo, ...counters, blocked });
  }

  /** About `maxBytes` of what waits, in order. */
  release(maxBytes: number): Released {
    const released: Released = { entries: [], overflow: [], upTo: {} };
    let bytes = 0;
    let count = 0;
    for (; count < this.#pieces.length && bytes < maxBytes; count += 1) {
      const piece = this.#pieces[count]!;
      bytes += piece.bytes;
      if (piece.stream === 'stdout') released.upTo.stdout = piece.rawTo;
      else released.upTo.stderr = piece.rawTo;
      if (piece.inBudget) released.entries.push(this.#toEntry(piece));
      else released.overflow.push(toOverflow(piece));
    }
    this.#pieces = this.#pieces.slice(count);
    this.bytes -= bytes;
    return released;
  }

  /** The gap at the end of a stream: raw bytes that no entry accounts for. Undefined without one. */
  toClosingEntry(stream: StreamName, pipeline: StreamPipeline): OutputEntry | undefined {
    const { rawReceived: rawTo, newlines: lines, bytes: offset, counts } = pipeline;
    const rawFrom = this.#rawInEntries[stream];
    if (rawTo === rawFrom) return undefined;
    const [seq, data] = [this.#nextSeq++, Buffer.alloc(0)];
    return { stream, seq, rawFrom, rawTo, omittedBytes: rawTo - rawFrom, lines, offset, ...toNotes(counts), data };
  }

  /** After a restart: an entry that the session's stream has. */
  restoreEntry({ stream, seq, rawTo, data }: OutputEntry): void {
    this.#nextSeq = seq + 1;
    this.bytesLeft -= data.byteLength;
    this.#rawInEntries[stream] = rawTo;
  }

  /** After a restart: the host's log has output, so the budget was used up. */
  restoreOverflow(): void {
    this.bytesLeft = 0;
  }

  #toEntry(piece: Piece): OutputEntry {
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
