import { type ByteSet, runEnd } from './bytes.ts';
import type { ScanWindow } from './source.ts';

/** The last run of bytes of one set that a scan has read. So a run with many candidates is read only once. */
export class KnownRun {
  readonly #set: ByteSet;
  #scan = 0;
  #from = 0;
  #to = 0;

  constructor(set: ByteSet) {
    this.#set = set;
  }

  /** Returns the end of the run that begins at `from`; at most `to`. */
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
