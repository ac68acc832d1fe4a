import { createCharacterBoundary } from './decode.ts';
import { addCounts, type Blocked, CONTEXT_BYTES, type CreateRedactor, type Redactor } from './redactor.ts';

const NOTHING: Buffer = Buffer.alloc(0);

/**
 * One stream's way through decoding and redaction. Everything that a restart has to know of it is in its counters: what came, what was
 * let go, and what was found in that.
 */
export class Lane {
  /** Raw bytes that came in; the next push has to begin here. */
  rawReceived = 0;
  /** Raw bytes that were let go: from here a new chain can go on. */
  rawReleased = 0;
  /** Cleaned bytes and newlines that were let go, or are known to be missing. */
  bytes = 0;
  newlines = 0;
  readonly #createRedactor: CreateRedactor | undefined;
  #boundary = createCharacterBoundary();
  #redactor: Redactor | undefined;
  /** Found by redactors before this one. */
  #countsBefore: Readonly<Record<string, number>> = {};
  #before: Buffer = NOTHING;

  constructor(createRedactor: CreateRedactor | undefined) {
    this.#createRedactor = createRedactor;
  }

  get heldBytes(): number {
    return this.#boundary.heldBytes + (this.#redactor?.heldBytes ?? 0);
  }

  get blocked(): Blocked | undefined {
    return this.#redactor?.blocked;
  }

  /** How often each type was found so far. */
  get counts(): Readonly<Record<string, number>> {
    const found = this.#redactor?.counts;
    return found === undefined ? this.#countsBefore : addCounts(this.#countsBefore, found);
  }

  push(raw: Buffer): Buffer {
    this.rawReceived += raw.length;
    const text = this.#boundary.push(raw);
    return this.#createRedactor === undefined || text.length === 0 ? text : this.#redact().push(text);
  }

  /** What was held back. What comes after it has nothing to do with what came before. */
  end(): Buffer {
    const rest = this.#boundary.end();
    const released =
      this.#createRedactor === undefined ? rest : Buffer.concat([this.#redact().push(rest), this.#redact().end()]);
    return released;
  }

  /** After `end`: begins anew behind a gap. */
  restart(): void {
    this.#countsBefore = this.counts;
    this.#redactor = undefined;
    this.#before = NOTHING;
  }

  /** Stored by a chain before this one: cleaned bytes that stand for all raw bytes up to `rawTo`. */
  restore(rawTo: number, data: Buffer, newlines: number, counts: Readonly<Record<string, number>>): void {
    this.rawReceived = rawTo;
    this.rawReleased = rawTo;
    this.bytes += data.length;
    this.newlines += newlines;
    this.#countsBefore = counts;
    const before = data.length < CONTEXT_BYTES ? Buffer.concat([this.#before, data]) : data;
    this.#before = Buffer.from(before.subarray(Math.max(0, before.length - CONTEXT_BYTES)));
  }

  #redact(): Redactor {
    this.#redactor ??= this.#createRedactor!(this.#before.length === 0 ? {} : { before: this.#before });
    return this.#redactor;
  }
}
