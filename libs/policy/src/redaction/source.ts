/** What one type does with what it finds. The lowest rank names a place that several found. */
export interface Rule {
  type: string;
  strategy: 'block' | 'redact' | 'mask' | 'hash';
  rank: number;
}

/**
 * The text that a source looks at: starts in [from, to), and up to `end` to see how they go on. The byte before `from`
 * is what was released last. `complete`: nothing comes after `end`.
 */
export interface View {
  bytes: Buffer;
  from: number;
  to: number;
  end: number;
  complete: boolean;
  /** Where the text to the left begins; equal to `from` at the beginning of a stream. */
  leftFrom: number;
}

/** Takes what sources find. All positions are of `View.bytes`. */
export interface Findings {
  /** The earliest place that is open. */
  readonly openAt: number;
  /** Whether what `rule` has found last goes on behind `at`. */
  covers(rule: Rule, at: number): boolean;
  /** [start, end) is to be replaced. What decided it begins at `from`, which is `start` unless a keyword stands before. */
  found(rule: Rule, from: number, start: number, end: number): void;
  /** Something that begins at `at` is neither found nor refused before more text comes. */
  open(rule: Rule, at: number): void;
}

/**
 * Finds one kind of thing. What it says of a start depends on the text from there on and on one byte to the left,
 * on nothing else: that is why any point that nothing found and nothing open crosses can be restarted from.
 */
export interface Source {
  scan(view: View, findings: Findings): void;
  /** Whether the byte to the left of `at`, before `end`, may matter: false where nothing that looks at it can begin. */
  mayReadLeftOf(bytes: Buffer, at: number, end: number): boolean;
}
