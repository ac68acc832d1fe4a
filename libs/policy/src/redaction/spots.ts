import type { ByteSet } from './bytes.ts';

// Every source's matches contain one of a few pairs of bytes. One pass over the text, two bytes at a time, collects the places of all
// pairs of all sources. Each source then looks at its own places only.

/** One bit for each kind of source. */
export const SPOT = { secrets: 1, tokens: 2, email: 4, ip: 8, mac: 16, url: 32 } as const;

/** A source finds all of its matches whose first byte is before `to` from the spots up to so many bytes after it. */
export const SPOTS_BEYOND_BYTES = 256;

const PAIRS = 0x10000;
const LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** For each pair of bytes, as an Uint16Array shows them: the bits of the sources that look near it. */
export class PairTable {
  readonly bits = new Uint8Array(PAIRS);

  add(first: number, second: number, bit: number): void {
    const pair = LITTLE_ENDIAN ? first | (second << 8) : (first << 8) | second;
    this.bits[pair]! |= bit;
  }

  /** All pairs of a byte of `firsts` and a byte of `seconds`. */
  addAll(firsts: ByteSet, seconds: ByteSet, bit: number): void {
    for (let first = 0; first < 256; first += 1) {
      if (firsts[first] === 0) continue;
      for (let second = 0; second < 256; second += 1) if (seconds[second] === 1) this.add(first, second, bit);
    }
  }
}

/** The places of pairs in a text, in order. Only pairs that begin at an even offset are seen: sources mark pairs for both cases. */
export class Spots {
  count = 0;
  /** The offset of the first byte of each pair. It may be the byte before the text, and the second byte may be behind the end. */
  at = new Int32Array(0);
  bits = new Uint8Array(0);

  /** `words`: the text from its first byte on. */
  collect(table: PairTable, words: Uint16Array, from: number, to: number): void {
    const first = from >> 1;
    const end = Math.min(words.length, (to + 1) >> 1);
    if (this.at.length < end - first) this.#grow(end - first);
    this.count = collectInto(this.at, this.bits, table.bits, words, first, end);
  }

  /** The index of the first spot from `index` on that has `bit`, or `count`. */
  next(index: number, bit: number): number {
    const { bits, count } = this;
    let at = index;
    while (at < count && (bits[at]! & bit) === 0) at += 1;
    return at;
  }

  #grow(most: number): void {
    this.at = new Int32Array(most);
    this.bits = new Uint8Array(most);
  }
}

function collectInto(
  at: Int32Array,
  bits: Uint8Array,
  table: Uint8Array,
  words: Uint16Array,
  first: number,
  end: number,
): number {
  let count = 0;
  for (let index = first; index < end; index += 1) {
    const bit = table[words[index]!]!;
    if (bit === 0) continue;
    at[count] = index << 1;
    bits[count] = bit;
    count += 1;
  }
  return count;
}
