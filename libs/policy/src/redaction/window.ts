import type { ScanWindow } from './source.ts';
import { collectSpots, type PairTable, SPOTS_BEYOND_BYTES, Spots } from './spots.ts';

/** Number of requests for pieces of one text after which the whole text is decoded once. */
const FEW_PIECES = 16;

/** The spots of the latest scan. Scans are synchronous, so all windows share them. */
const SHARED_SPOTS = { anchors: new Spots(), others: new Spots() };
let lastScan = 0;
const NO_BYTES = Buffer.alloc(0);
const NO_WORDS = new Uint16Array(0);

/** The text that a redactor holds, as its sources read it. */
export class PendingWindow implements ScanWindow {
  bytes: Buffer = NO_BYTES;
  from = 0;
  to = 0;
  end = 0;
  complete = false;
  leftFrom = 0;
  scan = 0;
  readonly anchorSpots = SHARED_SPOTS.anchors;
  readonly spots = SHARED_SPOTS.others;
  #words: Uint16Array = NO_WORDS;
  #pieces = 0;
  #text = '';
  #textFrom = 0;

  /** Sets the bytes. They must begin at an even offset of their memory and have an even length. */
  setBytes(bytes: Buffer): void {
    this.bytes = bytes;
    this.#words = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1);
    this.forgetText();
  }

  /** Discards decoded text. It must be called when bytes were added or moved. */
  forgetText(): void {
    this.#text = '';
    this.#pieces = 0;
  }

  /** Begins a scan of the bytes in [from, end) for matches that begin before `to`. */
  look(from: number, to: number, end: number, complete: boolean, leftFrom: number): void {
    this.from = from;
    this.to = to;
    this.end = end;
    this.complete = complete;
    this.leftFrom = leftFrom;
    lastScan += 1;
    this.scan = lastScan;
  }

  collectSpots(table: PairTable): void {
    const to = Math.min(this.end, this.to + SPOTS_BEYOND_BYTES);
    collectSpots(SHARED_SPOTS, table, this.#words, this.from, to);
  }

  latin1(start: number, end: number): string {
    const textEnd = this.#textFrom + this.#text.length;
    if (start >= this.#textFrom && end <= textEnd)
      return this.#text.slice(start - this.#textFrom, end - this.#textFrom);
    this.#pieces += 1;
    if (this.#pieces > FEW_PIECES && end <= this.end) {
      this.#textFrom = start;
      this.#text = this.bytes.toString('latin1', start, this.end);
    }
    return this.bytes.toString('latin1', start, end);
  }
}
