import type { StreamName } from '@shellfleet/protocol';
import { decodeUtf8 } from './decode.ts';
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

/** The texts of a Result: each redacted stream, and both merged in the order of their release, cut to the limits. */
export class ResultTextsBuilder {
  readonly #encoding: ResultTextsOptions['encoding'];
  readonly #truncates: Record<StreamName | 'merged', Truncate>;

  constructor({ maxBytes, maxLines, keep, encoding }: ResultTextsOptions) {
    const unit = encoding === 'utf8' ? 'characters' : 'bytes';
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
    const stdout = this.#truncates.stdout.end();
    const stderr = this.#truncates.stderr.end();
    const merged = this.#truncates.merged.end();
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

  #toText({ bytes }: Truncated): string {
    return this.#encoding === 'base64' ? bytes.toString('base64') : decodeUtf8(bytes);
  }
}
