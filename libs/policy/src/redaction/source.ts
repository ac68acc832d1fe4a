import type { PairTable, Spots } from './spots.ts';

/**
 * How findings of one type are replaced. If findings overlap, the rule of the lowest rank determines the name in the
 * replacement.
 */
export interface Rule {
  type: string;
  strategy: 'block' | 'redact' | 'mask' | 'hash';
  rank: number;
}

/**
 * The text that a source searches. Findings start in [from, to) and may extend to `end`, where the input ends if
 * `complete`. The byte before `from` was released last.
 */
export interface ScanWindow {
  bytes: Buffer;
  from: number;
  to: number;
  end: number;
  complete: boolean;
  /** Offset where the released text before `from` begins. It equals `from` at the beginning of a stream. */
  leftFrom: number;
  /** Number of this scan, unique over all redactors. */
  scan: number;
  /** Places of the pairs of bytes that anchors have marked, up to 256 bytes after `to`. */
  anchorSpots: Spots;
  /** Places that the other sources have marked. */
  spots: Spots;
  /** Returns the bytes [start, end) as a latin1 string. */
  latin1(start: number, end: number): string;
}

/** Collects the findings of all sources. Positions are offsets in `ScanWindow.bytes`. */
export interface Findings {
  /** The earliest open start. A start is open while later input decides whether it is a finding. */
  readonly openAt: number;
  /** Tells whether the last finding of `rule` ends after `at`. */
  covers(rule: Rule, at: number): boolean;
  /**
   * Reports that [start, end) is to be replaced. The match begins at `from`, which is before `start` if a keyword is a
   * part of the match.
   */
  found(rule: Rule, from: number, start: number, end: number): void;
  /** Reports an open start: a match may start at `at`, and only later input decides about it. */
  open(rule: Rule, at: number): void;
}

/**
 * Finds the matches of one kind. Whether a match starts at a byte depends only on the text from that byte on and on the
 * byte before it. So a search can restart at any byte that no finding and no open start spans.
 */
export interface Source {
  /** Marks the pairs of bytes that lead to matches. Without `mark` the source reads the whole text. */
  mark?(pairs: PairTable): void;
  scan(window: ScanWindow, findings: Findings): void;
  /** Tells whether a match may start at `at` that depends on the byte before `at`. The text is known up to `end`. */
  mayReadLeftOf(bytes: Buffer, at: number, end: number): boolean;
}
