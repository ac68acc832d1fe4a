import type { PairTable, Spots } from './spots.ts';

/**
 * How the findings of one type are replaced. Where findings
 * overlap, the rule with the lowest rank names the replacement.
 */
export interface Rule {
  type: string;
  strategy: 'block' | 'redact' | 'mask' | 'hash';
  rank: number;
}

/**
 * The text that a source searches. Findings start in [from, to) and may extend to `end`. The byte before `from` is the
 * one that was released last. `complete`: the input ends at `end`.
 */
export interface ScanWindow {
  bytes: Buffer;
  from: number;
  to: number;
  end: number;
  complete: boolean;
  /** Where the released text before `from` begins. Equal to `from` at the beginning of a stream. */
  leftFrom: number;
  /** Another number for each scan, also of other redactors. */
  scan: number;
  /** The places of the pairs of bytes that anchors have marked, up to 256 bytes after `to`. */
  anchorSpots: Spots;
  /** Those that the other sources have marked. */
  spots: Spots;
  /** The bytes [start, end) as a string of latin1. */
  latin1(start: number, end: number): string;
}

/** Collects the findings of all sources. Positions are offsets in `ScanWindow.bytes`. */
export interface Findings {
  /** The earliest start that is open: later input decides whether it is a finding. */
  readonly openAt: number;
  /** Whether the last finding of `rule` extends beyond `at`. */
  covers(rule: Rule, at: number): boolean;
  /**
   * Reports that [start, end) is to be replaced. The match begins at
   * `from`: before `start` if a keyword is part of it, else at `start`.
   */
  found(rule: Rule, from: number, start: number, end: number): void;
  /** Reports that a match may start at `at`, which only later input decides. */
  open(rule: Rule, at: number): void;
}

/**
 * Finds the matches of one kind. Whether a match starts at a byte depends only on that byte, on the text after it and
 * on one byte before it. So a search can restart at any byte that no finding and no open start spans.
 */
export interface Source {
  /** Marks the pairs of bytes that lead to its matches. Without it the source reads the whole text. */
  mark?(pairs: PairTable): void;
  scan(window: ScanWindow, findings: Findings): void;
  /** Whether a match that depends on the byte before `at` may start at `at`. The text is known up to `end`. */
  mayReadLeftOf(bytes: Buffer, at: number, end: number): boolean;
}
