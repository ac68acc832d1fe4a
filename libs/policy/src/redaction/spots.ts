import type { ByteSet } from './bytes.ts';

// Every match contains one of a few pairs of bytes. One pass over the text, two bytes at a time, collects the places of
// the pairs of all sources. Each source then looks at its own places only.

export const SPOT = { email: 4, ip: 8, mac: 16, url: 32 } as const;

/**
 * Two bits for one set of anchors. One means that an anchor begins at the spot, the other that it begins one byte
 * before the spot.
 */
export interface AnchorBits {
  here: number;
  before: number;
}
export const SECRET_ANCHOR_BITS: AnchorBits = { here: 1, before: 64 };
export const TOKEN_ANCHOR_BITS: AnchorBits = { here: 2, before: 128 };

/**
 * Number of bytes after `to` that are searched for spots. It is enough to find all matches whose first byte is before
 * `to`.
 */
export const SPOTS_BEYOND_BYTES = 256;

const OF_ANCHORS =
  SECRET_ANCHOR_BITS.here | SECRET_ANCHOR_BITS.before | TOKEN_ANCHOR_BITS.here | TOKEN_ANCHOR_BITS.before;
const PAIRS = 0x10000;
const LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/**
 * For each pair of bytes, the bits of the sources that look near it. The index is the pair as a Uint16Array shows it.
 */
export class PairTable {
  readonly bits = new Uint8Array(PAIRS);

  add(first: number, second: number, bit: number): void {
    const pair = LITTLE_ENDIAN ? first | (second << 8) : (first << 8) | second;
    this.bits[pair]! |= bit;
  }

  /** Adds all pairs of a byte of `firsts` and a byte of `seconds`. */
  addAll(firsts: ByteSet, seconds: ByteSet, bit: number): void {
    for (let first = 0; first < 256; first += 1) {
      if (firsts[first] === 0) continue;
      for (let second = 0; second < 256; second += 1) if (seconds[second] === 1) this.add(first, second, bit);
    }
  }
}

/**
 * Places of pairs in a text, in order. Only pairs at an even offset are found, so sources mark pairs for even and odd
 * offsets.
 */
export class Spots {
  count = 0;
  /**
   * Offset of the first byte of each pair. The first pair may begin one byte before the text, and the last may end one
   * byte after it.
   */
  at = new Int32Array(0);
  bits = new Uint8Array(0);

  /** Returns the index of the first spot from `index` on that has `bit`, or `count`. */
  next(index: number, bit: number): number {
    const { bits, count } = this;
    let at = index;
    while (at < count && (bits[at]! & bit) === 0) at += 1;
    return at;
  }

  makeRoom(most: number): void {
    if (this.at.length >= most) return;
    this.at = new Int32Array(most);
    this.bits = new Uint8Array(most);
  }
}

/**
 * Spots of anchors, and spots of all other sources. Three of four spots belong to anchors, so the lists are separate.
 */
export interface SpotLists {
  anchors: Spots;
  others: Spots;
}

/** Collects the spots of a text between `from` and `to`. `words` is the whole text as 16-bit words. */
export function collectSpots(lists: SpotLists, table: PairTable, words: Uint16Array, from: number, to: number): void {
  const first = from >> 1;
  const end = Math.min(words.length, (to + 1) >> 1);
  lists.anchors.makeRoom(end - first);
  lists.others.makeRoom(end - first);
  collectInto(lists.anchors, lists.others, table.bits, words, first, end);
}

function collectInto(
  anchors: Spots,
  others: Spots,
  table: Uint8Array,
  words: Uint16Array,
  first: number,
  end: number,
): void {
  const { at: anchorsAt, bits: anchorBits } = anchors;
  const { at: othersAt, bits: otherBits } = others;
  let anchorCount = 0;
  let otherCount = 0;
  for (let index = first; index < end; index += 1) {
    const bits = table[words[index]!]!;
    if (bits === 0) continue;
    if ((bits & OF_ANCHORS) !== 0) {
      anchorsAt[anchorCount] = index << 1;
      anchorBits[anchorCount] = bits;
      anchorCount += 1;
    }
    if ((bits & ~OF_ANCHORS) !== 0) {
      othersAt[otherCount] = index << 1;
      otherBits[otherCount] = bits;
      otherCount += 1;
    }
  }
  anchors.count = anchorCount;
  others.count = otherCount;
}
