import type { OutputEntry, StreamName } from '@shellfleet/protocol';
import { Lane } from './lane.ts';
import { type OverflowPiece, type Piece, toBytes, toNotes, toOverflow } from './piece.ts';
import { addCounts, type Blocked, type CreateRedactor } from './redactor.ts';
import { type ResultTexts, ResultTextsBuilder, type ResultTextsOptions } from './result-texts.ts';

// One command's output on its way from the keeper: decode → redact → entries for the stream; and, cut, the Result.
//
// O1. Every byte is released once, in order, whatever the keeper sends again.
// O2. An entry never covers a raw byte that a stage still holds back, so what is acknowledged can be restarted from.
// O3. Over the budget of the stream bytes go to the host's log and are counted in the stream as omitted, never dropped.
// O4. Fed back what was stored, a new instance continues as the old one would have: nothing is redacted, or counted, twice.
// O5. Redaction comes before everything that cuts, and what is blocked stays so: nothing of either stream follows the match.

const MOST_ENTRY_BYTES = 64 * 1024;

export interface CleanOutputOptions extends ResultTextsOptions {
  /** Bytes of a command that the session's stream carries, both streams together. */
  streamBytes: number;
  /** Omitted: nothing is looked for. */
  createRedactor?: CreateRedactor;
}

/** What is to be stored next, in order. */
export interface Released {
  entries: OutputEntry[];
  overflow: OverflowPiece[];
  /** Raw bytes of each stream that may be acknowledged to the keeper once this is stored. */
  upTo: Partial<Record<StreamName, number>>;
}

/** The texts of a Result, and what was found in them. */
export interface CleanTexts extends ResultTexts {
  redactions: Record<string, number>;
}

export class CleanOutput {
  readonly #options: CleanOutputOptions;
  readonly #lanes: Record<StreamName, Lane>;
  readonly #texts: ResultTextsBuilder;
  /** Raw bytes that the stream accounts for: entries only. */
  readonly #rawInEntries: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  #waiting: Piece[] = [];
  #waitingBytes = 0;
  /** Bytes came that nothing will be stored of. */
  #withheld = false;
  #blocked: Blocked | undefined;
  #streamBytesLeft: number;
  #nextSeq = 0;

  constructor(options: CleanOutputOptions) {
    this.#options = options;
    this.#streamBytesLeft = options.streamBytes;
    this.#lanes = { stdout: new Lane(options.createRedactor), stderr: new Lane(options.createRedactor) };
    this.#texts = new ResultTextsBuilder(options);
  }

  /** Bytes that were not given out by `release` yet. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** `release` has something to give out, if only offsets. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0 || this.#withheld;
  }

  /** The stream carries nothing more of the command. */
  get isOverBudget(): boolean {
    return this.#streamBytesLeft <= 0;
  }

  /** Why nothing more is given out. */
  get blocked(): Blocked | undefined {
    return this.#blocked;
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
      if (this.#blocked !== undefined) {
        this.#withhold(lane, rawFrom + raw.byteLength);
        return;
      }
      const slice = Buffer.from(raw.buffer, raw.byteOffset + at, Math.min(raw.byteLength - at, this.#sliceBytes(lane)));
      at += slice.length;
      const released = lane.push(slice);
      if (lane.blocked === undefined) this.#accept(stream, released, lane.rawReceived - lane.heldBytes);
      else this.#block(stream, lane.blocked);
    }
  }

  /** Raw bytes up to `rawTo` will never come: they are counted as omitted. */
  lose(stream: StreamName, rawTo: number): void {
    const lane = this.#lanes[stream];
    if (rawTo <= lane.rawReceived) return;
    this.#flush(stream);
    if (this.#blocked !== undefined) {
      this.#withhold(lane, rawTo);
      return;
    }
    lane.restart();
    this.#skip(stream, rawTo - lane.rawReceived, 0);
    lane.rawReceived = rawTo;
    lane.rawReleased = rawTo;
  }

  /** Everything came: what the stages held back is given out too. */
  end(): void {
    const tails = STREAMS.map((stream) => this.#flush(stream, 'apart'));
    if (this.#blocked === undefined) this.#mergeTails(tails);
  }

  /** About `maxBytes` of what waits, in order; empty lists when nothing does. */
  release(maxBytes = 4 * MOST_ENTRY_BYTES): Released {
    const released: Released = { entries: [], overflow: [], upTo: {} };
    let bytes = 0;
    let count = 0;
    for (; count < this.#waiting.length && bytes < maxBytes; count += 1) {
      const piece = this.#waiting[count]!;
      bytes += piece.bytes;
      released.upTo[piece.stream] = piece.rawTo;
      if (piece.inBudget) released.entries.push(this.#toEntry(piece));
      else released.overflow.push(toOverflow(piece));
    }
    this.#waiting = this.#waiting.slice(count);
    this.#waitingBytes -= bytes;
    if (this.#blocked === undefined || this.#waiting.length > 0) return released;
    this.#withheld = false;
    return { ...released, upTo: this.received };
  }

  /**
   * The gap at the end of each stream: raw bytes that no entry accounts for, because they are in the host's log, or withheld.
   * Asked for once, after `end` and after `release` has nothing left.
   */
  closingEntries(): OutputEntry[] {
    return STREAMS.flatMap((stream) => {
      const { rawReceived: rawTo, newlines: lines, bytes: offset, counts } = this.#lanes[stream];
      const rawFrom = this.#rawInEntries[stream];
      if (rawTo === rawFrom) return [];
      const [seq, data] = [this.#nextSeq++, Buffer.alloc(0)];
      return [{ stream, seq, rawFrom, rawTo, omittedBytes: rawTo - rawFrom, lines, offset, ...toNotes(counts), data }];
    });
  }

  /** What the Result says. `end` was called. */
  texts(): CleanTexts {
    const texts = this.#texts.end(this.#blocked === undefined);
    return { ...texts, redactions: addCounts(this.#lanes.stdout.counts, this.#lanes.stderr.counts) };
  }

  /** After a restart, before anything is pushed: the entries that the session's stream holds, in its order. */
  restoreEntry(entry: OutputEntry): void {
    const { stream } = entry;
    const lane = this.#lanes[stream];
    const data = Buffer.from(entry.data.buffer, entry.data.byteOffset, entry.data.byteLength);
    this.#nextSeq = entry.seq + 1;
    this.#streamBytesLeft -= data.length;
    this.#skip(stream, entry.offset - lane.bytes, 0);
    lane.restore(entry.rawTo, data, this.#texts.push(stream, data), entry.redactions ?? {});
    this.#rawInEntries[stream] = entry.rawTo;
    this.#blocked ??= entry.blocked;
  }

  /** Then the pieces that the host's log still has, in its order. What it dropped in between is counted. */
  restoreOverflow(piece: OverflowPiece): void {
    const lane = this.#lanes[piece.stream];
    if (piece.rawTo <= lane.rawReceived) return;
    this.#streamBytesLeft = 0;
    this.#skip(piece.stream, piece.bytesBefore - lane.bytes, piece.newlinesBefore - lane.newlines);
    lane.restore(piece.rawTo, piece.data, this.#texts.push(piece.stream, piece.data), piece.redactions);
  }

  /** Never across the budget: with nothing that holds back or rewrites, the stream carries exactly its budget. */
  #sliceBytes(lane: Lane): number {
    const untilBudget = this.#streamBytesLeft - lane.heldBytes;
    return untilBudget > 0 ? Math.min(MOST_ENTRY_BYTES, untilBudget) : MOST_ENTRY_BYTES;
  }

  /** `apart`: the caller sees to the merged order. */
  #accept(stream: StreamName, data: Buffer, rawTo: number, merging: 'merged' | 'apart' = 'merged'): void {
    const lane = this.#lanes[stream];
    // A long match is swallowed while it comes: bytes that are let go, and nothing that stands for them.
    if (data.length === 0 && rawTo === lane.rawReleased) return;
    const newlines = this.#texts.push(stream, data, merging);
    const inBudget = data.length <= this.#streamBytesLeft;
    this.#streamBytesLeft = inBudget ? this.#streamBytesLeft - data.length : 0;
    this.#waitingBytes += data.length;
    const last = this.#waiting.at(-1);
    const continues = last?.stream === stream && last.inBudget === inBudget && last.rawTo === lane.rawReleased;
    if (last && continues && last.bytes + data.length <= MOST_ENTRY_BYTES) {
      last.parts.push(data);
      last.bytes += data.length;
      last.newlines += newlines;
      last.rawTo = rawTo;
      last.redactions = lane.counts;
    } else {
      const counters = { bytesBefore: lane.bytes, newlinesBefore: lane.newlines, redactions: lane.counts };
      const range = { rawFrom: lane.rawReleased, rawTo };
      this.#waiting.push({ stream, inBudget, ...range, ...counters, parts: [data], bytes: data.length, newlines });
    }
    lane.bytes += data.length;
    lane.newlines += newlines;
    lane.rawReleased = rawTo;
  }

  /** Gives out what a stream held back, unless something in it blocks. */
  #flush(stream: StreamName, merging: 'merged' | 'apart' = 'merged'): Buffer {
    if (this.#blocked !== undefined) return NOTHING;
    const lane = this.#lanes[stream];
    const rest = lane.end();
    if (lane.blocked === undefined) this.#accept(stream, rest, lane.rawReceived, merging);
    else this.#block(stream, lane.blocked);
    return rest;
  }

  /** O5: says in the stream that a rule has blocked, in the entry that covers the match: an adopter meets both, or neither. */
  #block(stream: StreamName, blocked: Blocked): void {
    const lane = this.#lanes[stream];
    const { rawReleased: rawFrom, rawReceived: rawTo, bytes: bytesBefore, newlines: newlinesBefore } = lane;
    const counters = { bytesBefore, newlinesBefore, redactions: lane.counts, bytes: 0, newlines: 0, parts: [] };
    this.#waiting.push({ stream, inBudget: true, rawFrom, rawTo, ...counters, blocked });
    lane.rawReleased = rawTo;
    this.#blocked = blocked;
  }

  #withhold(lane: Lane, rawTo: number): void {
    lane.rawReceived = rawTo;
    this.#withheld = true;
  }

  /** What both streams held back stands side by side in the merged order, where it may become what neither is alone. */
  #mergeTails(tails: Buffer[]): void {
    const both = Buffer.concat(tails);
    const needsLook = this.#options.createRedactor !== undefined && tails.every(({ length }) => length > 0);
    this.#texts.pushMerged(needsLook ? this.#redactAnew(both) : both);
  }

  #redactAnew(bytes: Buffer): Buffer {
    const redactor = this.#options.createRedactor!({});
    return Buffer.concat([redactor.push(bytes), redactor.end()]);
  }

  /** Cleaned bytes that are known by their number alone. */
  #skip(stream: StreamName, bytes: number, newlines: number): void {
    if (bytes <= 0) return;
    const lane = this.#lanes[stream];
    lane.bytes += bytes;
    lane.newlines += newlines;
    this.#texts.skip(stream, bytes, newlines);
  }

  #toEntry(piece: Piece): OutputEntry {
    const { stream, rawTo, bytesBefore: offset, redactions, blocked } = piece;
    const rawFrom = this.#rawInEntries[stream];
    this.#rawInEntries[stream] = rawTo;
    const omittedBytes = (blocked === undefined ? piece.rawFrom : rawTo) - rawFrom;
    const lines = piece.newlinesBefore + piece.newlines;
    const notes = toNotes(redactions, blocked);
    return {
      stream,
      seq: this.#nextSeq++,
      rawFrom,
      rawTo,
      omittedBytes,
      lines,
      offset,
      ...notes,
      data: toBytes(piece),
    };
  }
}

const NOTHING = Buffer.alloc(0);
const STREAMS: readonly StreamName[] = ['stdout', 'stderr'];
