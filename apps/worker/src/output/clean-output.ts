import type { OutputEntry, StreamName } from '@shellfleet/protocol';
import { createCharacterBoundary, decodeUtf8 } from './decode.ts';
import { countNewlines } from './lines.ts';
import { chainStages, type Stage } from './stage.ts';
import { Truncate, type Truncated } from './truncate.ts';

// One command's output on its way from the keeper: decode → (redact) → entries for the stream; and, cut, the Result.
//
// O1. Every byte is released once, in order, whatever the keeper sends again.
// O2. An entry never covers a raw byte that a stage still holds back, so what is acknowledged can be restarted from.
// O3. Over the budget of the stream bytes go to the host's log and are counted in the stream as omitted, never dropped.
// O4. Fed back what was stored, a new instance continues as the old one would have.

const MOST_ENTRY_BYTES = 64 * 1024;

export interface CleanOutputOptions {
  /** Bytes of a command that the session's stream carries, both streams together. */
  streamBytes: number;
  maxBytes: number;
  maxLines: number;
  keep: 'head' | 'tail' | 'head-tail';
  encoding: 'utf8' | 'base64';
  /** What stands between decoding and release, for one stream. This is where a redactor goes. */
  stages?: (stream: StreamName) => Stage[];
}

/** A piece for the host's log: cleaned bytes beyond the budget, with the counters that were reached before it. */
export interface OverflowPiece {
  stream: StreamName;
  rawFrom: number;
  rawTo: number;
  bytesBefore: number;
  newlinesBefore: number;
  data: Buffer;
}

/** What is to be stored next, in order. Acknowledge a piece's `rawTo` to the keeper only when it is stored. */
export interface Released {
  entries: OutputEntry[];
  overflow: OverflowPiece[];
}

export interface ResultTexts {
  stdout: string;
  stderr: string;
  output: string;
  truncated: { bytes: boolean; lines: boolean };
  totals: { stdoutBytes: number; stderrBytes: number; stdoutLines: number; stderrLines: number };
}

interface Lane {
  stage: Stage;
  /** Raw bytes that came in; the next push has to begin here. */
  rawReceived: number;
  /** Raw bytes that the stages let go. */
  rawAccepted: number;
  /** Raw bytes that the stream accounts for: entries only. */
  rawInEntries: number;
  /** Cleaned bytes and newlines that were given out. */
  bytes: number;
  newlines: number;
  truncate: Truncate;
}

/** Cleaned bytes that wait to be given out: all of them go into the stream, or all into the host's log. */
interface Piece {
  stream: StreamName;
  inBudget: boolean;
  rawFrom: number;
  rawTo: number;
  parts: Buffer[];
  bytes: number;
  newlines: number;
}

export class CleanOutput {
  readonly #options: CleanOutputOptions;
  readonly #lanes: Record<StreamName, Lane>;
  readonly #merged: Truncate;
  #waiting: Piece[] = [];
  #waitingBytes = 0;
  #streamBytesLeft: number;
  #nextSeq = 0;

  constructor(options: CleanOutputOptions) {
    this.#options = options;
    this.#streamBytesLeft = options.streamBytes;
    this.#lanes = { stdout: this.#createLane('stdout'), stderr: this.#createLane('stderr') };
    this.#merged = this.#createTruncate();
  }

  /** Bytes that were not given out by `release` yet. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** The raw offset from which each stream has to come next. */
  get received(): Record<StreamName, number> {
    return { stdout: this.#lanes.stdout.rawReceived, stderr: this.#lanes.stderr.rawReceived };
  }

  /** Raw bytes of `stream` from `rawFrom` on. What came before is ignored; a gap has to be said with `lose`. */
  push(stream: StreamName, rawFrom: number, raw: Uint8Array): void {
    const lane = this.#lanes[stream];
    const known = lane.rawReceived - rawFrom;
    if (known < 0) throw new Error(`${stream} continues at ${rawFrom}, but ended at ${lane.rawReceived}`);
    for (let at = known; at < raw.byteLength; ) {
      const slice = Buffer.from(raw.buffer, raw.byteOffset + at, Math.min(raw.byteLength - at, this.#sliceBytes(lane)));
      at += slice.length;
      lane.rawReceived += slice.length;
      this.#accept(stream, lane.stage.push(slice), lane.rawReceived - lane.stage.heldBytes);
    }
  }

  /** Raw bytes up to `rawTo` will never come: they are counted as omitted. */
  lose(stream: StreamName, rawTo: number): void {
    const lane = this.#lanes[stream];
    if (rawTo <= lane.rawReceived) return;
    this.#accept(stream, lane.stage.end(), lane.rawReceived);
    this.#skip(lane, rawTo - lane.rawReceived, 0);
    lane.rawReceived = rawTo;
    lane.rawAccepted = rawTo;
  }

  /** Everything came: what the stages held back is given out too. */
  end(): void {
    for (const stream of STREAMS)
      this.#accept(stream, this.#lanes[stream].stage.end(), this.#lanes[stream].rawReceived);
  }

  /** About `maxBytes` of what waits, in order; empty lists when nothing does. */
  release(maxBytes = 4 * MOST_ENTRY_BYTES): Released {
    const released: Released = { entries: [], overflow: [] };
    let bytes = 0;
    let count = 0;
    for (; count < this.#waiting.length && bytes < maxBytes; count += 1) {
      const piece = this.#waiting[count]!;
      bytes += piece.bytes;
      if (piece.inBudget) released.entries.push(this.#toEntry(piece));
      else released.overflow.push(this.#toOverflow(piece));
    }
    this.#waiting = this.#waiting.slice(count);
    this.#waitingBytes -= bytes;
    return released;
  }

  /**
   * The gap at the end of each stream: raw bytes that no entry accounts for, because they are in the host's log.
   * Asked for once, after `end` and after `release` has nothing left.
   */
  closingEntries(): OutputEntry[] {
    const gaps = STREAMS.filter((stream) => this.#lanes[stream].rawReceived > this.#lanes[stream].rawInEntries);
    return gaps.map((stream) => {
      const { rawInEntries: rawFrom, rawReceived: rawTo, newlines: lines } = this.#lanes[stream];
      const data = Buffer.alloc(0);
      return { stream, seq: this.#nextSeq++, rawFrom, rawTo, omittedBytes: rawTo - rawFrom, lines, data };
    });
  }

  /** What the Result says. `end` was called. */
  texts(): ResultTexts {
    const stdout = this.#lanes.stdout.truncate.end();
    const stderr = this.#lanes.stderr.truncate.end();
    const output = this.#merged.end();
    const cuts = [stdout, stderr, output].map(({ cut }) => cut);
    return {
      stdout: this.#toText(stdout),
      stderr: this.#toText(stderr),
      output: this.#toText(output),
      truncated: { bytes: cuts.some(({ bytes }) => bytes), lines: cuts.some(({ lines }) => lines) },
      totals: {
        stdoutBytes: stdout.totalBytes,
        stderrBytes: stderr.totalBytes,
        stdoutLines: stdout.totalLines,
        stderrLines: stderr.totalLines,
      },
    };
  }

  /** After a restart, before anything is pushed: the entries that the session's stream holds, in its order. */
  restoreEntry(entry: OutputEntry): void {
    const data = Buffer.from(entry.data.buffer, entry.data.byteOffset, entry.data.byteLength);
    this.#nextSeq = entry.seq + 1;
    this.#streamBytesLeft -= data.length;
    this.#skip(this.#lanes[entry.stream], entry.omittedBytes, 0);
    this.#restore(entry.stream, entry.rawTo, data);
    this.#lanes[entry.stream].rawInEntries = entry.rawTo;
  }

  /** Then the pieces that the host's log still has, in its order. What it dropped in between is counted. */
  restoreOverflow(piece: OverflowPiece): void {
    const lane = this.#lanes[piece.stream];
    if (piece.rawTo <= lane.rawReceived) return;
    this.#streamBytesLeft = 0;
    this.#skip(lane, piece.bytesBefore - lane.bytes, piece.newlinesBefore - lane.newlines);
    lane.bytes = piece.bytesBefore;
    lane.newlines = piece.newlinesBefore;
    this.#restore(piece.stream, piece.rawTo, piece.data);
  }

  #restore(stream: StreamName, rawTo: number, data: Buffer): void {
    const lane = this.#lanes[stream];
    lane.rawReceived = rawTo;
    lane.rawAccepted = rawTo;
    lane.bytes += data.length;
    lane.newlines += this.#feedResult(lane, data);
  }

  /** Never across the budget: with nothing that holds back or rewrites, the stream carries exactly its budget. */
  #sliceBytes(lane: Lane): number {
    const untilBudget = this.#streamBytesLeft - lane.stage.heldBytes;
    return untilBudget > 0 ? Math.min(MOST_ENTRY_BYTES, untilBudget) : MOST_ENTRY_BYTES;
  }

  #accept(stream: StreamName, data: Buffer, rawTo: number): void {
    if (data.length === 0) return;
    const lane = this.#lanes[stream];
    const newlines = this.#feedResult(lane, data);
    const inBudget = data.length <= this.#streamBytesLeft;
    this.#streamBytesLeft = inBudget ? this.#streamBytesLeft - data.length : 0;
    this.#waitingBytes += data.length;
    const last = this.#waiting.at(-1);
    const continues = last?.stream === stream && last.inBudget === inBudget && last.rawTo === lane.rawAccepted;
    if (last && continues && last.bytes + data.length <= MOST_ENTRY_BYTES) {
      last.parts.push(data);
      last.bytes += data.length;
      last.newlines += newlines;
      last.rawTo = rawTo;
    } else {
      const rawFrom = lane.rawAccepted;
      this.#waiting.push({ stream, inBudget, rawFrom, rawTo, parts: [data], bytes: data.length, newlines });
    }
    lane.rawAccepted = rawTo;
  }

  #feedResult(lane: Lane, data: Buffer): number {
    const newlines = countNewlines(data);
    lane.truncate.push(data, newlines);
    this.#merged.push(data, newlines);
    return newlines;
  }

  #skip(lane: Lane, bytes: number, newlines: number): void {
    lane.truncate.skip(bytes, newlines);
    this.#merged.skip(bytes, newlines);
  }

  #toEntry(piece: Piece): OutputEntry {
    const lane = this.#lanes[piece.stream];
    const { stream, rawTo } = piece;
    const rawFrom = lane.rawInEntries;
    this.#countReleased(lane, piece);
    lane.rawInEntries = rawTo;
    const omittedBytes = piece.rawFrom - rawFrom;
    return { stream, seq: this.#nextSeq++, rawFrom, rawTo, omittedBytes, lines: lane.newlines, data: toBytes(piece) };
  }

  #toOverflow(piece: Piece): OverflowPiece {
    const lane = this.#lanes[piece.stream];
    const { stream, rawFrom, rawTo } = piece;
    const before = { bytesBefore: lane.bytes, newlinesBefore: lane.newlines };
    this.#countReleased(lane, piece);
    return { stream, rawFrom, rawTo, ...before, data: toBytes(piece) };
  }

  #countReleased(lane: Lane, piece: Piece): void {
    lane.bytes += piece.bytes;
    lane.newlines += piece.newlines;
  }

  #toText({ bytes }: Truncated): string {
    return this.#options.encoding === 'base64' ? bytes.toString('base64') : decodeUtf8(bytes);
  }

  #createLane(stream: StreamName): Lane {
    const stage = chainStages([createCharacterBoundary(), ...(this.#options.stages?.(stream) ?? [])]);
    const counters = { rawReceived: 0, rawAccepted: 0, rawInEntries: 0, bytes: 0, newlines: 0 };
    return { stage, ...counters, truncate: this.#createTruncate() };
  }

  #createTruncate(): Truncate {
    const { maxBytes, maxLines, keep, encoding } = this.#options;
    return new Truncate({ maxBytes, maxLines, keep, unit: encoding === 'utf8' ? 'characters' : 'bytes' });
  }
}

const STREAMS: readonly StreamName[] = ['stdout', 'stderr'];

function toBytes({ parts }: Piece): Buffer {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}
