import { LIMITS, type StreamName } from '@shellfleet/protocol';
import { decodeUtf8 } from './decode.ts';
import { jsonSize, type TextUnit } from './json-size.ts';
import { countNewlines } from './lines.ts';
import { Truncate, type Truncated } from './truncate.ts';

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

/** Of an encoded Result, for everything but its texts. */
const OTHER_FIELDS_BYTES = 65_536;
const TEXTS_BYTES = LIMITS.resultBytes - OTHER_FIELDS_BYTES;

/** The texts of a Result: each redacted stream, and both merged in the order of their release, cut to the limits. */
export class ResultTextsBuilder {
  readonly #encoding: ResultTextsOptions['encoding'];
  readonly #unit: TextUnit;
  readonly #truncates: Record<StreamName | 'merged', Truncate>;

  constructor({ maxBytes, maxLines, keep, encoding }: ResultTextsOptions) {
    const unit = encoding === 'utf8' ? 'characters' : 'bytes';
    this.#unit = unit;
    const createTruncate = () => new Truncate({ maxBytes, maxLines, keep, unit });
    this.#encoding = encoding;
    this.#truncates = { stdout: createTruncate(), stderr: createTruncate(), merged: createTruncate() };
  }

  /** `newlines`: in `data`. `apart`: the caller adds the bytes to the merged text, with `pushMerged`. */
  push(stream: StreamName, data: Buffer, newlines: number, merging: 'merged' | 'apart'): void {
    this.#truncates[stream].push(data, newlines);
    if (merging === 'merged') this.#truncates.merged.push(data, newlines);
  }

  pushMerged(data: Buffer): void {
    this.#truncates.merged.push(data, countNewlines(data));
  }

  /** Bytes of which only the number is known. */
  skip(stream: StreamName, bytes: number, newlines: number): void {
    this.#truncates[stream].skip(bytes, newlines);
    this.#truncates.merged.skip(bytes, newlines);
  }

  /** Without `isShown` only the totals are given. */
  end(isShown: boolean): ResultTexts {
    const { stdout, stderr, merged } = this.#cut();
    const cuts = [stdout, stderr, merged].map(({ cut }) => cut);
    return {
      stdout: isShown ? this.#toText(stdout) : '',
      stderr: isShown ? this.#toText(stderr) : '',
      output: isShown ? this.#toText(merged) : '',
      truncated: {
        bytes: isShown && cuts.some(({ bytes }) => bytes),
        lines: isShown && cuts.some(({ lines }) => lines),
      },
      totals: {
        stdoutBytes: stdout.totalBytes,
        stderrBytes: stderr.totalBytes,
        stdoutLines: stdout.totalLines,
        stderrLines: stderr.totalLines,
      },
    };
  }

  /** Together at most TEXTS_BYTES in JSON. A Result contains the merged text only if both streams have output. */
  #cut(): Record<StreamName | 'merged', Truncated> {
    const { stdout, stderr, merged } = this.#truncates;
    const whole = { stdout: stdout.end(), stderr: stderr.end(), merged: merged.end() };
    const isMerged = whole.stdout.totalBytes > 0 && whole.stderr.totalBytes > 0;
    const sizes = (isMerged ? [whole.stdout, whole.stderr, whole.merged] : [whole.merged]).map(({ bytes }) =>
      jsonSize(bytes, this.#unit),
    );
    const most = equalShare(sizes, TEXTS_BYTES);
    if (sizes.every((size) => size <= most)) return whole;
    return { stdout: stdout.end(most), stderr: stderr.end(most), merged: merged.end(most) };
  }

  #toText({ bytes }: Truncated): string {
    return this.#encoding === 'base64' ? bytes.toString('base64') : decodeUtf8(bytes);
  }
}

/** The limit for each part with which all of them together take at most `total`: what a small part leaves, the others share. */
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
