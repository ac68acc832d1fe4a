import { STREAM_NAMES, type StoredChunk, type StreamName } from '@shellfleet/protocol';
import { countNewlines } from './lines.ts';
import { MOST_ENTRY_BYTES, OutputQueue, type OverflowPiece, type Released } from './output-queue.ts';
import { addCounts, type Blocked, type CreateRedactor } from './redactor.ts';
import { type ResultTexts, ResultTextsBuilder, type ResultTextsOptions } from './result-texts.ts';
import { StreamPipeline } from './stream-pipeline.ts';

// The output of one command: each stream goes through its pipeline (decode → redact), then into the queue (budget of
// the session's stream) and into the texts of the Result. Terminals are only redacted, because their user's
// program decodes, and a tool call's JSON is redacted as a whole (tools/redact-json.ts).
//
// OUTPUT-1. Every byte is released once and in order, even if the keeper sends it again.
// OUTPUT-2. A chunk never covers a pending raw byte, so a new chain can continue from the acknowledged offset.
// OUTPUT-3. Bytes over the budget of the stream go to the overflow log and are counted in the stream as omitted. None
//     is dropped uncounted.
// OUTPUT-4. Given the stored output, a new chain continues as the old chain would have: nothing is redacted or counted
//     twice.
// OUTPUT-5. Redaction comes before every cut. After a match that blocks, nothing of either stream is released.

/** A command has all of these options. Late output has no texts, and startup and shutdown commands store nothing. */
export interface CleanOutputOptions {
  /** Creates the redactor of each stream. Default: output is not redacted. */
  createRedactor?: CreateRedactor | undefined;
  /** Bytes of the command that the session's stream takes, stdout and stderr together. Default: no output is stored. */
  streamBytes?: number;
  /** How the texts of the Result are cut. Without it there is no Result, and texts() throws. */
  texts?: ResultTextsOptions;
}

/** Texts of a Result, and how often each type was found in them. */
export interface CleanTexts extends ResultTexts {
  redactions: Readonly<Record<string, number>>;
}

export class CleanOutput {
  readonly #createRedactor: CreateRedactor | undefined;
  readonly #pipelines: Record<StreamName, StreamPipeline>;
  readonly #queue: OutputQueue | undefined;
  readonly #texts: ResultTextsBuilder | undefined;
  /** True when bytes were received for which nothing will be stored. */
  #withheld = false;
  #blocked: Blocked | undefined;

  constructor({ createRedactor, streamBytes, texts }: CleanOutputOptions) {
    this.#createRedactor = createRedactor;
    this.#pipelines = { stdout: new StreamPipeline(createRedactor), stderr: new StreamPipeline(createRedactor) };
    this.#queue = streamBytes === undefined ? undefined : new OutputQueue(streamBytes);
    this.#texts = texts && new ResultTextsBuilder(texts);
  }

  get waitingBytes(): number {
    return this.#queue?.bytes ?? 0;
  }

  /** True when `release` has something to return, even if only offsets. */
  get isWaiting(): boolean {
    return this.#queue?.isEmpty === false || this.#withheld;
  }

  /** True when the stream takes nothing more of the command. */
  get isOverBudget(): boolean {
    return this.#queue !== undefined && this.#queue.bytesLeft <= 0;
  }

  get blocked(): Blocked | undefined {
    return this.#blocked;
  }

  get received(): Record<StreamName, number> {
    return { stdout: this.#pipelines.stdout.rawReceived, stderr: this.#pipelines.stderr.rawReceived };
  }

  /** Takes raw bytes from `rawFrom` on, and skips those that it has received. Throws at a gap: call lose() first. */
  push(stream: StreamName, rawFrom: number, raw: Uint8Array): void {
    const pipeline = this.#pipelines[stream];
    const known = pipeline.rawReceived - rawFrom;
    if (known < 0) throw new Error(`${stream} continues at ${rawFrom}, but ended at ${pipeline.rawReceived}`);
    for (let at = known; at < raw.byteLength; ) {
      if (this.#blocked !== undefined) {
        this.#withhold(pipeline, rawFrom + raw.byteLength);
        return;
      }
      const length = Math.min(raw.byteLength - at, this.#sliceBytes(pipeline));
      const slice = Buffer.from(raw.buffer, raw.byteOffset + at, length);
      at += length;
      const released = pipeline.push(slice);
      if (pipeline.blocked === undefined) this.#accept(stream, released, pipeline.rawReceived - pipeline.pendingBytes);
      else this.#block(stream, pipeline.blocked);
    }
  }

  /** Counts raw bytes up to `rawTo` as omitted, because they will never come. */
  lose(stream: StreamName, rawTo: number): void {
    const pipeline = this.#pipelines[stream];
    if (rawTo <= pipeline.rawReceived) return;
    this.#flush(stream);
    if (this.#blocked !== undefined) {
      this.#withhold(pipeline, rawTo);
      return;
    }
    pipeline.restart();
    this.#skip(stream, rawTo - pipeline.rawReceived, 0);
    pipeline.rawReceived = rawTo;
    pipeline.rawReleased = rawTo;
  }

  /** Releases the pending bytes of all stages, after everything was received. */
  end(): void {
    const tails = STREAM_NAMES.map((stream) => this.#flush(stream, 'apart'));
    if (this.#blocked === undefined) this.#mergeTails(tails);
  }

  /** Returns about `maxBytes` of the waiting output, in order; empty lists when there is none. */
  release(maxBytes = 4 * MOST_ENTRY_BYTES): Released {
    const released = this.#queue?.release(maxBytes) ?? { chunks: [], overflow: [], upTo: {} };
    if (this.#blocked === undefined || this.#queue?.isEmpty === false) return released;
    this.#withheld = false;
    return { ...released, upTo: this.received };
  }

  /** Returns a chunk for each stream whose end is in the overflow log or withheld. Called after `end` and `release`. */
  closingChunks(): StoredChunk[] {
    return STREAM_NAMES.flatMap((stream) => this.#queue?.toClosingChunk(stream, this.#pipelines[stream]) ?? []);
  }

  /** Returns the texts of the Result. To be called after `end`. */
  texts(): CleanTexts {
    if (this.#texts === undefined) throw new Error('this chain has no texts');
    const texts = this.#texts.end(this.#blocked === undefined);
    return { ...texts, redactions: addCounts(this.#pipelines.stdout.counts, this.#pipelines.stderr.counts) };
  }

  /** Returns the redacted end of the output, even if the texts omit it. To be called after `end`. */
  last(): string {
    return this.#blocked === undefined ? (this.#texts?.last() ?? '') : '';
  }

  /** Restores, in order, a chunk that the session's stream has. To be called after a restart, before any push. */
  restoreChunk(entry: StoredChunk): void {
    const { stream } = entry;
    const pipeline = this.#pipelines[stream];
    const data = Buffer.from(entry.data.buffer, entry.data.byteOffset, entry.data.byteLength);
    this.#skip(stream, entry.offset - pipeline.bytes, 0);
    pipeline.restore(entry.rawTo, data, this.#addText(stream, data), entry.redactions ?? {});
    this.#queue?.restoreChunk(entry);
    this.#blocked ??= entry.blocked;
  }

  /** Restores a piece of the overflow log, after restoreChunk(). Dropped pieces are counted as omitted. */
  restoreOverflow(piece: OverflowPiece): void {
    const pipeline = this.#pipelines[piece.stream];
    if (piece.rawTo <= pipeline.rawReceived) return;
    this.#queue?.restoreOverflow();
    this.#skip(piece.stream, piece.bytesBefore - pipeline.bytes, piece.newlinesBefore - pipeline.newlines);
    pipeline.restore(piece.rawTo, piece.data, this.#addText(piece.stream, piece.data), piece.redactions);
  }

  /** Returns how many bytes to redact next. They end at the budget, so that unchanged bytes fill it exactly. */
  #sliceBytes(pipeline: StreamPipeline): number {
    const untilBudget = (this.#queue?.bytesLeft ?? 0) - pipeline.pendingBytes;
    return untilBudget > 0 ? Math.min(MOST_ENTRY_BYTES, untilBudget) : MOST_ENTRY_BYTES;
  }

  /** Takes redacted bytes up to the raw offset `rawTo`. With `apart` the caller adds them to the merged text. */
  #accept(stream: StreamName, data: Buffer, rawTo: number, merging: 'merged' | 'apart' = 'merged'): void {
    const pipeline = this.#pipelines[stream];
    // While a long match is received, bytes are consumed and nothing is released for them.
    if (data.length === 0 && rawTo === pipeline.rawReleased) return;
    const newlines = this.#addText(stream, data, merging);
    this.#queue?.push(stream, pipeline, data, newlines, rawTo);
    pipeline.bytes += data.length;
    pipeline.newlines += newlines;
    pipeline.rawReleased = rawTo;
  }

  /** Adds bytes to the texts. Returns their number of newlines, which is counted once for all stages. */
  #addText(stream: StreamName, data: Buffer, merging: 'merged' | 'apart' = 'merged'): number {
    const newlines = countNewlines(data);
    this.#texts?.push(stream, data, newlines, merging);
    return newlines;
  }

  /** Releases the pending bytes of a stream, unless a match in them blocks. */
  #flush(stream: StreamName, merging: 'merged' | 'apart' = 'merged'): Buffer {
    if (this.#blocked !== undefined) return NOTHING;
    const pipeline = this.#pipelines[stream];
    const rest = pipeline.end();
    if (pipeline.blocked === undefined) this.#accept(stream, rest, pipeline.rawReceived, merging);
    else this.#block(stream, pipeline.blocked);
    return rest;
  }

  /**
   * Queues the note of a block with the bytes of its match (OUTPUT-5), so that an adopting host has both or neither.
   */
  #block(stream: StreamName, blocked: Blocked): void {
    const pipeline = this.#pipelines[stream];
    this.#queue?.pushBlocked(stream, pipeline, blocked);
    this.#blocked = blocked;
  }

  #withhold(pipeline: StreamPipeline, rawTo: number): void {
    pipeline.rawReceived = rawTo;
    this.#withheld = true;
  }

  /** Merges the last bytes of both streams, redacted again: together they may form a secret that neither contains. */
  #mergeTails(tails: Buffer[]): void {
    const both = Buffer.concat(tails);
    const mayForm = this.#createRedactor !== undefined && tails.every(({ length }) => length > 0);
    this.#texts?.pushMerged(mayForm ? this.#redactAnew(both) : both);
  }

  #redactAnew(bytes: Buffer): Buffer {
    const redactor = this.#createRedactor!({});
    return Buffer.concat([redactor.push(bytes), redactor.end()]);
  }

  #skip(stream: StreamName, bytes: number, newlines: number): void {
    if (bytes <= 0) return;
    const pipeline = this.#pipelines[stream];
    pipeline.bytes += bytes;
    pipeline.newlines += newlines;
    this.#texts?.skip(stream, bytes, newlines);
  }
}

const NOTHING = Buffer.alloc(0);
