import { wholeCharacters } from './bytes.ts';
import { type Finding, FindingList, placesOf, type Span, strongest } from './finding-list.ts';
import { TooSlow } from './patterns/time-budget.ts';
import { ReleasedBytes } from './released-bytes.ts';
import type { Rule, Source } from './source.ts';
import type { PairTable } from './spots.ts';
import { redacted, replacementOf } from './strategies.ts';
import { PendingWindow } from './window.ts';

// Redacts one stream of bytes. Text is "settled" when no later input can change what is found in it.
//
// REDACTION-1. Any chunking of the same input gives the same output, counts and block: only settled text is released.
// REDACTION-2. The pending bytes are the input from the earliest byte that is not settled. A new redactor that gets the
//     last released bytes as `before`, and the input from there, continues exactly as this one would have.
// REDACTION-3. At most 64 KiB are pending. Text that is not settled by then counts as found, and is replaced.
// REDACTION-4. All rules search the raw text, in one pass. Findings that overlap become one replacement, named by the
//     strongest rule. Replacements are not searched.
// REDACTION-5. Where nothing is found, the output is the input, byte for byte, UTF-8 or not.
// REDACTION-6. After a block nothing more is released, and nothing is pending.

/** Number of last released bytes that a new redactor needs as `before`. Earlier bytes are ignored. */
export const REDACTION_CONTEXT_BYTES = 4;

const MOST_PENDING_BYTES = 64 * 1024;

export interface RedactionBlock {
  type: string;
  reason: 'matched' | 'too-slow';
}

export interface Redactor {
  /** Takes input, and returns the output that is settled. */
  push(bytes: Uint8Array): Buffer;
  /** Ends the input, and returns the rest of the output. */
  end(): Buffer;
  /** How many bytes at the end of the input are not released yet. */
  readonly pendingBytes: number;
  /** How often each type was found. */
  readonly counts: Readonly<Record<string, number>>;
  readonly blocked: RedactionBlock | undefined;
}

export interface RedactorOptions {
  sources: readonly Source[];
  /** Returns the pairs of bytes that `sources` mark. It is called at the first search. */
  pairs(): PairTable;
  budget: { receive(bytes: number): void };
  hashKey: Uint8Array;
  before?: Uint8Array | undefined;
}

const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);
const NO_COUNTS: Readonly<Record<string, number>> = Object.freeze({});
/**
 * Number of pending bytes up to which every push searches them again. Above it, a search follows only a growth by 1/16.
 */
const CHEAP_TO_REPEAT_BYTES = 4096;
const NARROW_WINDOW_BYTES = 1;

export class StreamRedactor implements Redactor {
  readonly #options: RedactorOptions;
  readonly #findings = new FindingList();
  /** Findings of a repeated search at one byte, after a replacement has changed the byte before it. */
  readonly #again = new FindingList();
  readonly #window = new PendingWindow();
  readonly #counts = new Map<string, number>();
  #blocked: RedactionBlock | undefined;
  /** [leftFrom, at) are the last released bytes, [at, end) the pending bytes. */
  #bytes: Buffer;
  #leftFrom: number;
  #at: number;
  #end: number;
  /**
   * Distance within which a search looks for starts of findings: short while replacements are adjacent, otherwise all
   * pending bytes.
   */
  #windowBytes = MOST_PENDING_BYTES;
  /** Number of pending bytes at which the next search runs. */
  #tryAgainAt = 0;
  readonly #released = new ReleasedBytes();

  constructor(options: RedactorOptions) {
    this.#options = options;
    const left = (options.before ?? NOTHING).subarray(-REDACTION_CONTEXT_BYTES);
    // The buffer begins with a newline, because for patterns a stream begins with the beginning of a line.
    this.#bytes = evenBuffer(1 + left.length);
    this.#bytes[0] = NEWLINE;
    this.#bytes.set(left, 1);
    this.#leftFrom = 1;
    this.#at = 1 + left.length;
    this.#end = this.#at;
    this.#window.setBytes(this.#bytes);
  }

  get pendingBytes(): number {
    return this.#end - this.#at;
  }

  get counts(): Readonly<Record<string, number>> {
    return this.#counts.size === 0 ? NO_COUNTS : Object.fromEntries(this.#counts);
  }

  get blocked(): RedactionBlock | undefined {
    return this.#blocked;
  }

  push(bytes: Uint8Array): Buffer {
    for (let from = 0; from < bytes.length && !this.#blocked; from += MOST_PENDING_BYTES) {
      const slice = bytes.subarray(from, from + MOST_PENDING_BYTES);
      this.#options.budget.receive(slice.length);
      this.#append(slice);
      if (this.pendingBytes >= this.#tryAgainAt || slice.includes(NEWLINE)) this.#settle(false);
    }
    return this.#released.take();
  }

  end(): Buffer {
    this.#settle(true);
    return this.#released.take();
  }

  #append(bytes: Uint8Array): void {
    if (this.#end + bytes.length > this.#bytes.length) this.#makeRoom(bytes.length);
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
    this.#window.forgetText();
  }

  #makeRoom(bytes: number): void {
    // The buffer has one byte in front, so that the first byte of a stream has a left neighbour too.
    const keepFrom = Math.max(this.#leftFrom, this.#at - REDACTION_CONTEXT_BYTES) - 1;
    const needed = this.#end - keepFrom + bytes;
    const roomier = needed <= this.#bytes.length * 0.75 ? this.#bytes : evenBuffer(2 * needed);
    this.#bytes.copy(roomier, 0, keepFrom, this.#end);
    if (roomier !== this.#bytes) this.#window.setBytes(roomier);
    this.#bytes = roomier;
    this.#leftFrom = 1;
    this.#at -= keepFrom;
    this.#end -= keepFrom;
  }

  /** Searches the pending bytes, and releases those that are settled. */
  #settle(complete: boolean): void {
    try {
      while (this.#at < this.#end && !this.#blocked && this.#step(complete));
    } catch (error) {
      if (!(error instanceof TooSlow)) throw error;
      this.#block(error.type, 'too-slow');
    }
    const muchPending = this.pendingBytes > CHEAP_TO_REPEAT_BYTES;
    this.#tryAgainAt = muchPending ? Math.min(this.pendingBytes * 1.0625, MOST_PENDING_BYTES) : 0;
  }

  /** Searches once. Returns whether another step may settle more. */
  #step(complete: boolean): boolean {
    const at = this.#at;
    const isLast = complete && this.#end - at <= MOST_PENDING_BYTES;
    const end = isLast ? this.#end : wholeCharacters(this.#bytes, at, Math.min(this.#end, at + MOST_PENDING_BYTES));
    if (end === at) return false;
    const to = Math.min(end, at + this.#windowBytes);
    this.#scan(to, end, isLast);

    const rescan = this.#releaseSettled(to, end);
    if (rescan || this.#blocked) {
      this.#windowBytes = NARROW_WINDOW_BYTES;
      return !this.#blocked;
    }
    if (to < end) {
      this.#windowBytes *= 8;
      return true;
    }
    this.#windowBytes = MOST_PENDING_BYTES;
    if (this.#at > at) return end < this.#end;
    if (this.#end - at < MOST_PENDING_BYTES) return false;
    this.#giveUp(end);
    return true;
  }

  #scan(to: number, end: number, complete: boolean): void {
    const { sources, pairs } = this.#options;
    this.#window.look(this.#at, to, end, complete, this.#leftFrom);
    this.#window.collectSpots(pairs());
    this.#findings.clear();
    for (const source of sources) this.#findings.search(source, this.#window);
  }

  /**
   * Releases settled text. Returns true if the last byte of a replacement changes the findings after it, so that a new
   * search is needed.
   */
  #releaseSettled(to: number, end: number): boolean {
    let settledTo = Math.min(this.#findings.openAt, to);
    const spans = this.#findings.spans();
    for (let index = 0; index < spans.length; index += 1) {
      const span = spans[index]!;
      if (span.from >= settledTo) break;
      if (span.end > settledTo) {
        settledTo = span.from;
        break;
      }
      const last = this.#releaseSpan(span);
      if (this.#blocked) return false;
      if (last === undefined) continue;
      this.#bytes[span.end - 1] = last;
      const next = spans[index + 1];
      const foundThere = next?.from === span.end ? next.findings : [];
      if (span.end < end && this.#changesAt(span.end, settledTo, end, foundThere)) return true;
    }
    this.#releaseVerbatim(settledTo);
    return false;
  }

  /** Tells whether findings at `at` change because the byte before `at` is now the last byte of a replacement. */
  #changesAt(at: number, settledTo: number, end: number, foundThere: readonly Finding[]): boolean {
    const reads = (source: Source): boolean => source.mayReadLeftOf(this.#bytes, at, end);
    if (!this.#options.sources.some(reads)) return false;
    // Only a search of all text that follows decides whether an open start there is a finding.
    if (at >= settledTo) return true;
    const sources = this.#options.sources.filter(reads);
    this.#window.look(at, at + 1, end, this.#window.complete, this.#leftFrom);
    this.#window.collectSpots(this.#options.pairs());
    this.#again.clear();
    for (const source of sources) this.#again.search(source, this.#window);
    if (this.#again.openAt <= at) return true;
    const before = foundThere.filter(
      ({ from, source }) => from === at && source !== undefined && sources.includes(source),
    );
    return !this.#again.areSame(before);
  }

  /** Releases a span. Returns the last byte of its replacement if the span ends with one. */
  #releaseSpan(span: Span): number | undefined {
    if (span.findings.length === 1) return this.#replace(span.findings);
    let last: number | undefined;
    for (const place of placesOf(span)) {
      last = this.#replace(place);
      if (this.#blocked) return undefined;
    }
    if (this.#at < span.end) last = undefined;
    this.#releaseVerbatim(span.end);
    return last;
  }

  /** Replaces findings that overlap. Returns the last byte of the replacement. */
  #replace(place: readonly Finding[]): number | undefined {
    const { rule, start, end } = strongest(place);
    this.#releaseVerbatim(place[0]!.start);
    this.#count(rule);
    if (rule.strategy === 'block') {
      this.#block(rule.type, 'matched');
      return undefined;
    }
    // A mask shows a part of one rule's finding. Where findings overlap, that part may be another rule's finding.
    const isPlain = rule.strategy === 'redact' || (rule.strategy === 'mask' && !place.every(isMasked));
    const replacement = isPlain
      ? redacted(rule)
      : replacementOf(rule, this.#bytes.subarray(start, end), this.#options.hashKey);
    this.#release(replacement);
    this.#at = place.length === 1 ? end : place.reduce((most, finding) => Math.max(most, finding.end), 0);
    return replacement[replacement.length - 1];
  }

  #releaseVerbatim(to: number): void {
    if (to <= this.#at) return;
    this.#released.add(this.#bytes, this.#at, to, this.#end - to);
    this.#at = to;
  }

  #release(replacement: Buffer): void {
    this.#released.add(replacement, 0, replacement.length, this.#end - this.#at);
  }

  /** Replaces all pending bytes when the limit is reached and none of them is settled (REDACTION-3). */
  #giveUp(end: number): void {
    const pending = this.#findings.spans()[0]?.findings ?? [];
    const open = this.#findings.openRule;
    const { rule } = strongest([...pending, ...(open ? [{ rule: open }] : [])] as { rule: Rule }[]);
    this.#count(rule);
    if (rule.strategy === 'block') {
      this.#block(rule.type, 'matched');
      return;
    }
    const replacement = redacted(rule);
    this.#release(replacement);
    this.#at = end;
    this.#bytes[end - 1] = replacement.at(-1)!;
  }

  #count({ type }: Rule): void {
    this.#counts.set(type, (this.#counts.get(type) ?? 0) + 1);
  }

  #block(type: string, reason: RedactionBlock['reason']): void {
    this.#blocked = { type, reason };
    this.#at = this.#end;
  }
}

function isMasked({ rule }: Finding): boolean {
  return rule.strategy === 'mask';
}

/**
 * Creates a buffer that can be read as 16-bit words. Node's small buffers share a pool, and may begin at an odd offset
 * in it.
 */
function evenBuffer(bytes: number): Buffer {
  const buffer = Buffer.allocUnsafe(bytes + (bytes & 1));
  return buffer.byteOffset % 2 === 0 ? buffer : Buffer.allocUnsafeSlow(buffer.length);
}
