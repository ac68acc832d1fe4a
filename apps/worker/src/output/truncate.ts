import { orphanedHead, unfinishedTail } from './decode.ts';
import { firstWithin, jsonSize, lastWithin, type TextUnit } from './json-size.ts';
import { countNewlines, endOfLines, startOfLastLines } from './lines.ts';
import { TailBuffer } from './tail-buffer.ts';

// TRUNCATION-1. Input within both limits is returned byte for byte.
// TRUNCATION-2. Otherwise at most maxBytes bytes and maxLines lines of it are returned, with one marker line that
//     counts what is omitted.
// TRUNCATION-3. Totals are exact for any cut, and memory does not grow with the input.
// TRUNCATION-4. Text that is too large in JSON is cut further, at the same ends, and marked and counted in the same
//     way.

export interface TruncateOptions {
  maxBytes: number;
  maxLines: number;
  keep: 'head' | 'tail' | 'head-tail';
  /** Unit of a cut. With `characters`, no cut is inside a character. */
  unit: TextUnit;
}

export interface Truncated {
  /** Bytes that stay valid until the next push. */
  bytes: Buffer;
  cut: { bytes: boolean; lines: boolean };
  totalBytes: number;
  totalLines: number;
}

/** Part of the limits that the head may use. */
const SHARES = { head: 1, tail: 0, 'head-tail': 0.5 } as const;
/** Bytes at the end of the input that are kept besides the text, because a program reports there why it failed. */
const LAST_BYTES = 10_240;
const MARKER_BYTES = 100;

export class Truncate {
  readonly #options: TruncateOptions;
  readonly #headBytes: number;
  readonly #headLines: number;
  #head: TailBuffer;
  #rest: TailBuffer;
  #headNewlines = 0;
  #headFull: boolean;
  #totalBytes = 0;
  #totalNewlines = 0;
  #endsInNewline = true;

  constructor(options: TruncateOptions) {
    const share = SHARES[options.keep];
    this.#options = options;
    this.#headBytes = Math.ceil(options.maxBytes * share);
    this.#headLines = Math.ceil(options.maxLines * share);
    this.#headFull = share === 0;
    this.#head = new TailBuffer(this.#headBytes);
    // The buffer can hold the whole limit, because only the end of the input shows whether everything fits.
    this.#rest = new TailBuffer(Math.max(options.keep === 'head' ? 0 : options.maxBytes, LAST_BYTES));
  }

  /** Adds bytes. The caller has counted their newlines. */
  push(bytes: Buffer, newlines: number): void {
    if (bytes.length === 0) return;
    this.#count(bytes.length, newlines);
    this.#endsInNewline = bytes[bytes.length - 1] === NEWLINE;
    this.#rest.push(this.#headFull ? bytes : this.#fillHead(bytes));
  }

  /** Returns an independent copy with the same input. */
  copy(): Truncate {
    const copy = new Truncate(this.#options);
    copy.#head = this.#head.copy();
    copy.#rest = this.#rest.copy();
    copy.#headNewlines = this.#headNewlines;
    copy.#headFull = this.#headFull;
    copy.#totalBytes = this.#totalBytes;
    copy.#totalNewlines = this.#totalNewlines;
    copy.#endsInNewline = this.#endsInNewline;
    return copy;
  }

  /** Counts bytes of unknown content between two pushes. */
  skip(bytes: number, newlines: number): void {
    if (bytes === 0) return;
    this.#count(bytes, newlines);
    this.#headFull = true;
    this.#rest.clear();
  }

  /** Returns the text, of which the JSON takes at most `mostJsonBytes`. May be called again with a lower number. */
  end(mostJsonBytes = Number.POSITIVE_INFINITY): Truncated {
    const { maxBytes, maxLines, unit } = this.#options;
    const totals = { totalBytes: this.#totalBytes, totalLines: this.#totalNewlines + (this.#endsInNewline ? 0 : 1) };
    const head = this.#head.bytes();
    const rest = this.#rest.bytes();
    const isWhole = head.length + rest.length === this.#totalBytes;
    const lines = totals.totalLines > maxLines;
    const bytes = lines ? this.#isCutByBytes(head, rest) : this.#totalBytes > maxBytes || !isWhole;
    const isCut = lines || bytes;
    const text = isCut ? this.#cut(head, rest) : rest.length === 0 ? head : Buffer.concat([head, rest]);
    if (mostJsonBytes === Number.POSITIVE_INFINITY || jsonSize(text, unit) <= mostJsonBytes)
      return { bytes: text, cut: { bytes, lines }, ...totals };
    const shorter = isCut ? this.#cutByJson(head, rest, mostJsonBytes) : this.#cutByJson(text, text, mostJsonBytes);
    return { bytes: shorter, cut: { bytes: true, lines }, ...totals };
  }

  /**
   * Tells whether the limit on bytes has cut text, and not only the limit on lines. In that case a kept part has fewer
   * lines than its share.
   */
  #isCutByBytes(head: Buffer, rest: Buffer): boolean {
    const { maxBytes, maxLines, keep } = this.#options;
    if (this.#totalBytes <= maxBytes) return false;
    if (keep !== 'tail' && head.length >= this.#headBytes && this.#headNewlines < this.#headLines) return true;
    if (keep === 'head') return false;
    const from = Math.max(0, rest.length - (maxBytes - head.length));
    const tail = rest.subarray(from);
    const endsLine = tail.length === 0 || tail[tail.length - 1] === NEWLINE;
    const lines = countNewlines(tail) + (endsLine ? 0 : 1);
    const left = maxLines - countLines(head);
    // A tail with exactly its share of lines was still cut by bytes if it begins in the middle of a line.
    return lines < left || (lines === left && (from === 0 || rest[from - 1] !== NEWLINE));
  }

  /** Returns the last LAST_BYTES of the input, as far as they are known. Valid until the next push. */
  last(): Buffer {
    const rest = this.#rest.bytes();
    const whole = this.#head.length + rest.length === this.#totalBytes ? [this.#head.bytes(), rest] : [rest];
    const known = Buffer.concat(whole);
    return known.subarray(Math.max(0, known.length - LAST_BYTES));
  }

  /** Cuts the text until its JSON fits (TRUNCATION-4). `head` and `rest` may be the same bytes. */
  #cutByJson(head: Buffer, rest: Buffer, mostJsonBytes: number): Buffer {
    const { unit, keep } = this.#options;
    const most = mostJsonBytes - MARKER_BYTES;
    const first = head.subarray(0, firstWithin(head, most * SHARES[keep], unit));
    const left = keep === 'head' ? 0 : most - jsonSize(first, unit);
    return this.#cut(first, rest.subarray(rest.length - lastWithin(rest, left, unit)));
  }

  #cut(wholeHead: Buffer, rest: Buffer): Buffer {
    const { maxBytes, maxLines, unit } = this.#options;
    const head =
      unit === 'characters' ? wholeHead.subarray(0, wholeHead.length - unfinishedTail(wholeHead)) : wholeHead;
    const tail = this.#cutTail(rest, maxBytes - wholeHead.length, maxLines - countLines(wholeHead));
    const omittedBytes = this.#totalBytes - head.length - tail.length;
    const omittedLines = this.#totalNewlines - countNewlines(head) - countNewlines(tail);
    return Buffer.concat([head, marker(omittedBytes, omittedLines, head, tail), tail]);
  }

  #cutTail(rest: Buffer, maxBytes: number, maxLines: number): Buffer {
    const byBytes = rest.subarray(Math.max(0, rest.length - maxBytes));
    const byLines = byBytes.subarray(startOfLastLines(byBytes, maxLines));
    return this.#options.unit === 'characters' ? byLines.subarray(orphanedHead(byLines)) : byLines;
  }

  /** Adds bytes to the head until it is full. Returns the rest of the bytes. */
  #fillHead(bytes: Buffer): Buffer {
    const byBytes = Math.min(bytes.length, this.#headBytes - this.#head.length);
    const taken = bytes.subarray(0, endOfLines(bytes.subarray(0, byBytes), this.#headLines - this.#headNewlines));
    this.#head.push(taken);
    this.#headNewlines += countNewlines(taken);
    this.#headFull = this.#head.length >= this.#headBytes || this.#headNewlines >= this.#headLines;
    return bytes.subarray(taken.length);
  }

  #count(bytes: number, newlines: number): void {
    this.#totalBytes += bytes;
    this.#totalNewlines += newlines;
  }
}

const NEWLINE = 10;

/** Counts lines. A last line without a newline counts. */
const countLines = (bytes: Buffer) => countNewlines(bytes) + (bytes.length > 0 && bytes.at(-1) !== NEWLINE ? 1 : 0);

/** Returns the marker, on a separate line. */
function marker(bytes: number, lines: number, head: Buffer, tail: Buffer): Buffer {
  const before = head.length > 0 && head[head.length - 1] !== NEWLINE ? '\n' : '';
  const after = tail.length > 0 ? '\n' : '';
  return Buffer.from(`${before}[... ${bytes} bytes, ${lines} lines omitted ...]${after}`);
}
