import { CharacterBoundary } from './decode.ts';
import { addCounts, type Blocked, CONTEXT_BYTES, type CreateRedactor, type RedactionStage } from './redactor.ts';

const NOTHING: Buffer = Buffer.alloc(0);

/** Decodes and redacts one stream of one command. After a restart, a new pipeline continues from its counters. */
export class StreamPipeline {
  /** Raw bytes that were received. The next push begins here. */
  rawReceived = 0;
  /** Raw bytes that were released. A new pipeline can continue from here. */
  rawReleased = 0;
  /** Cleaned bytes that were released, or are known to be missing. */
  bytes = 0;
  newlines = 0;
  readonly #createRedactor: CreateRedactor | undefined;
  readonly #boundary = new CharacterBoundary();
  #redactor: RedactionStage | undefined;
  /** Findings that the redactors before the current one counted. */
  #countsBefore: Readonly<Record<string, number>> = {};
  /** The last cleaned bytes that an earlier pipeline released. */
  #before: Buffer = NOTHING;

  constructor(createRedactor: CreateRedactor | undefined) {
    this.#createRedactor = createRedactor;
  }

  /** Raw bytes that are pending, because they may be part of a character or of a finding. */
  get pendingBytes(): number {
    return this.#boundary.pendingBytes + (this.#redactor?.pendingBytes ?? 0);
  }

  get blocked(): Blocked | undefined {
    return this.#redactor?.blocked;
  }

  get counts(): Readonly<Record<string, number>> {
    const found = this.#redactor?.counts;
    return found === undefined ? this.#countsBefore : addCounts(this.#countsBefore, found);
  }

  /** Returns cleaned bytes that share no memory with `raw`. */
  push(raw: Buffer): Buffer {
    this.rawReceived += raw.length;
    const text = this.#boundary.push(raw);
    if (text.length === 0) return NOTHING;
    return this.#createRedactor === undefined ? Buffer.from(text) : this.#redact().push(text);
  }

  /** Releases the pending bytes. Bytes that are pushed later are unrelated to them. */
  end(): Buffer {
    const rest = this.#boundary.end();
    if (this.#createRedactor === undefined) return rest;
    // A stream without output needs no redactor.
    if (this.#redactor === undefined && rest.length === 0) return NOTHING;
    const settled = rest.length === 0 ? NOTHING : this.#redact().push(rest);
    const last = this.#redact().end();
    return settled.length === 0 ? last : Buffer.concat([settled, last]);
  }

  /** Continues after `end` and a gap with a new redactor. The counts continue. */
  restart(): void {
    this.#countsBefore = this.counts;
    this.#redactor = undefined;
    this.#before = NOTHING;
  }

  /** Continues an earlier pipeline, which stored `data` for all raw bytes up to `rawTo`. */
  restore(rawTo: number, data: Buffer, newlines: number, counts: Readonly<Record<string, number>>): void {
    this.rawReceived = rawTo;
    this.rawReleased = rawTo;
    this.bytes += data.length;
    this.newlines += newlines;
    this.#countsBefore = counts;
    const before = data.length < CONTEXT_BYTES ? Buffer.concat([this.#before, data]) : data;
    this.#before = Buffer.from(before.subarray(Math.max(0, before.length - CONTEXT_BYTES)));
  }

  #redact(): RedactionStage {
    this.#redactor ??= this.#createRedactor!(this.#before.length === 0 ? {} : { before: this.#before });
    return this.#redactor;
  }
}
