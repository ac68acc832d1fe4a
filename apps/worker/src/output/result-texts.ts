import { LIMITS, type StreamName } from '@shellfleet/protocol';
import { decodeUtf8, orphanedHead } from './decode.ts';
import { jsonSize, MOST_JSON_PER_BYTE } from './json-size.ts';
import { countNewlines } from './lines.ts';
import { Truncate, type Truncated, type TruncateOptions } from './truncate.ts';

export interface ResultTextsOptions {
  maxBytes: number;
  maxLines: number;
  keep: 'head' | 'tail' | 'head-tail';
  encoding: 'utf8' | 'base64';
}

export interface ResultTexts {
  stdout: string;
  stderr: string;
  output: string;
  truncated: { bytes: boolean; lines: boolean };
  totals: { stdoutBytes: number; stderrBytes: number; stdoutLines: number; stderrLines: number };
}

/** Part of an encoded Result that is reserved for all other fields. */
const OTHER_FIELDS_BYTES = 65_536;
const TEXTS_BYTES = LIMITS.resultBytes - OTHER_FIELDS_BYTES;

/** Texts of a Result: each redacted stream, and both merged in the order of their release, cut to the limits. */
export class ResultTextsBuilder {
  readonly #encoding: ResultTextsOptions['encoding'];
  readonly #limits: TruncateOptions;
  /** Text of each stream that has output. Most commands print on one stream, or nothing. */
  readonly #streams: Partial<Record<StreamName, Truncate>> = {};
  /** Merged text once a second stream has output. Before that, it equals the text of the only stream. */
  #merged: Truncate | undefined;

  constructor({ maxBytes, maxLines, keep, encoding }: ResultTextsOptions) {
    this.#limits = { maxBytes, maxLines, keep, unit: encoding === 'utf8' ? 'characters' : 'bytes' };
    this.#encoding = encoding;
  }

  /** Adds redacted bytes and their newlines. With `apart` the caller adds them to the merged text, by `pushMerged`. */
  push(stream: StreamName, data: Buffer, newlines: number, merging: 'merged' | 'apart'): void {
    if (data.length === 0) return;
    const merged = merging === 'merged' ? this.#mergedFor(stream) : this.#mergedApart();
    this.#of(stream).push(data, newlines);
    if (merging === 'merged') merged?.push(data, newlines);
  }

  pushMerged(data: Buffer): void {
    if (data.length > 0) this.#mergedApart().push(data, countNewlines(data));
  }

  skip(stream: StreamName, bytes: number, newlines: number): void {
    if (bytes === 0) return;
    const merged = this.#mergedFor(stream);
    this.#of(stream).skip(bytes, newlines);
    merged?.skip(bytes, newlines);
  }

  /** Returns the texts. Without `isShown`, returns only the totals. */
  end(isShown: boolean): ResultTexts {
    const { stdout = EMPTY, stderr = EMPTY, merged } = this.#cut();
    const [stdoutText, stderrText] = isShown ? [this.#toText(stdout), this.#toText(stderr)] : ['', ''];
    const cuts = [stdout, stderr, merged].map((text) => text?.cut);
    return {
      stdout: stdoutText,
      stderr: stderrText,
      output: isShown && merged !== undefined ? this.#toText(merged) : stdoutText + stderrText,
      truncated: {
        bytes: isShown && cuts.some((cut) => cut?.bytes === true),
        lines: isShown && cuts.some((cut) => cut?.lines === true),
      },
      totals: {
        stdoutBytes: stdout.totalBytes,
        stderrBytes: stderr.totalBytes,
        stdoutLines: stdout.totalLines,
        stderrLines: stderr.totalLines,
      },
    };
  }

  /** Returns the end of both streams in the order of their release, in whole characters, even if the texts omit it. */
  last(): string {
    const { stdout, stderr } = this.#streams;
    const last = (this.#merged ?? stdout ?? stderr)?.last() ?? EMPTY.bytes;
    return decodeUtf8(last.subarray(orphanedHead(last)));
  }

  #of(stream: StreamName): Truncate {
    this.#streams[stream] ??= new Truncate(this.#limits);
    return this.#streams[stream];
  }

  /** Returns the merged text for output of `stream`, or undefined while no other stream has any. */
  #mergedFor(stream: StreamName): Truncate | undefined {
    this.#merged ??= this.#streams[stream === 'stdout' ? 'stderr' : 'stdout']?.copy();
    return this.#merged;
  }

  /** Returns a merged text that is separate from the texts of the streams. */
  #mergedApart(): Truncate {
    const { stdout, stderr } = this.#streams;
    this.#merged ??= (stdout ?? stderr)?.copy() ?? new Truncate(this.#limits);
    return this.#merged;
  }

  /** Cuts the texts to TEXTS_BYTES of JSON together. A Result has the merged text only if both streams have output. */
  #cut(): Partial<Record<StreamName | 'merged', Truncated>> {
    const { unit } = this.#limits;
    const { stdout, stderr } = this.#streams;
    const merged = stdout === undefined || stderr === undefined ? undefined : this.#merged;
    const texts = [stdout, stderr, merged];
    const whole = texts.map((text) => text?.end());
    const byteCount = whole.reduce((sum, text) => sum + (text?.bytes.length ?? 0), 0);
    if (byteCount * MOST_JSON_PER_BYTE <= TEXTS_BYTES) return named(whole);
    const sizes = whole.flatMap((text) => (text === undefined ? [] : [jsonSize(text.bytes, unit)]));
    const most = equalShare(sizes, TEXTS_BYTES);
    return named(sizes.every((size) => size <= most) ? whole : texts.map((text) => text?.end(most)));
  }

  #toText({ bytes }: Truncated): string {
    return this.#encoding === 'base64' ? bytes.toString('base64') : decodeUtf8(bytes);
  }
}

const EMPTY: Truncated = { bytes: Buffer.alloc(0), cut: { bytes: false, lines: false }, totalBytes: 0, totalLines: 0 };

function named([stdout, stderr, merged]: readonly (Truncated | undefined)[]) {
  return { ...(stdout && { stdout }), ...(stderr && { stderr }), ...(merged && { merged }) };
}

/**
 * Returns the limit for each part with which the sum of all is at most `total`. Small parts leave room to large ones.
 */
function equalShare(sizes: readonly number[], total: number): number {
  let left = total;
  let share = Number.POSITIVE_INFINITY;
  [...sizes]
    .sort((a, b) => a - b)
    .forEach((size, index) => {
      share = Math.floor(left / (sizes.length - index));
      left -= Math.min(size, share);
    });
  return share;
}
