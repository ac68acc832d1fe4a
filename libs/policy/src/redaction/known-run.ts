import { type ByteSet, runEnd } from './bytes.ts';
import type { ScanWindow } from './source.ts';

/**
 * The last run of bytes of one set that was read in a scan. Where many
 * candidates are in one run, it is read once, not once for each of them.
 */
export class KnownRun {
  readonly #set: ByteSet;
  #scan = 0;
  #from = 0;
  #to = 0;

  constructor(set: ByteSet) {
    this.#set = set;
  }

  /** The end of the run that begins at `from`; at most `to`. */
  end({ bytes, scan }: ScanWindow, from: number, to: number): number {
    const isKnown = this.#scan === scan && from >= this.#from && from <= this.#to;
    if (!isKnown) {
      this.#scan = scan;
      this.#from = from;
      this.#to = from;
    }
    if (to <= this.#to) return to;
    this.#to = runEnd(bytes, this.#to, to, this.#set);
    return this.#to;
  }
}
