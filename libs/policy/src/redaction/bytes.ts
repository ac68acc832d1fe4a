/** A set of bytes, as a table of 256 items. The item of a byte in the set is 1. */
export type ByteSet = Uint8Array;

/** Returns the ASCII characters of a regular expression's class, such as `a-z0-9_`. */
export function byteSet(ranges: string): ByteSet {
  const pattern = new RegExp(`[${ranges}]`);
  return Uint8Array.from({ length: 256 }, (_, byte) => (byte < 128 && pattern.test(String.fromCharCode(byte)) ? 1 : 0));
}

export const ANY: ByteSet = new Uint8Array(256).fill(1);
export const DIGITS = byteSet('0-9');
export const LETTERS = byteSet('A-Za-z');
export const ALPHANUMERICS = byteSet('A-Za-z0-9');
export const WORD = byteSet('A-Za-z0-9_');
export const HEX = byteSet('0-9A-Fa-f');

/** Returns the end of the run of bytes of `set` that begins at `from`; at most `to`. */
export function runEnd(bytes: Uint8Array, from: number, to: number, set: ByteSet): number {
  let at = from;
  while (at < to && set[bytes[at]!] === 1) at += 1;
  return at;
}

/** Returns the beginning of the run of bytes of `set` that ends at `end`; at least `from`. */
export function runStart(bytes: Uint8Array, end: number, from: number, set: ByteSet): number {
  let at = end;
  while (at > from && set[bytes[at - 1]!] === 1) at -= 1;
  return at;
}

const NEAR_BYTES = 48;

/** Returns the offset of the first `byte` in [from, to), or `to` if there is none. */
export function indexOfByte(bytes: Uint8Array, byte: number, from: number, to: number): number {
  // Most bytes are found nearby. Over a distance Buffer.indexOf is faster, in spite of the cost of its call.
  const near = Math.min(to, from + NEAR_BYTES);
  let at = from;
  while (at < near && bytes[at] !== byte) at += 1;
  if (at < near || near === to) return at;
  const found = bytes.subarray(near, to).indexOf(byte);
  return found === -1 ? to : near + found;
}

/** Returns `end`, or the beginning of a UTF-8 character that is incomplete at `end`. */
export function wholeCharacters(bytes: Uint8Array, from: number, end: number): number {
  for (let back = 1; back <= 3 && end - back >= from; back += 1) {
    const byte = bytes[end - back]!;
    if (byte < 0x80) return end;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) && byte < 0xf5 ? end - back : end;
  }
  return end;
}
