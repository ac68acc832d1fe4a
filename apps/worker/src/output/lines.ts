const NEWLINE = 10;

// Counts four bytes at a time without a branch. One indexOf call per line is several times slower for short lines, and
// branch prediction fails for short lines and random bytes.
export function countNewlines(bytes: Uint8Array): number {
  const { buffer, byteOffset, length } = bytes;
  const before = Math.min(length, -byteOffset & 3);
  const words = (length - before) >> 2;
  const behind = before + 4 * words;
  let count = countBetween(bytes, 0, before) + countBetween(bytes, behind, length);
  if (words === 0) return count;
  const view = new Int32Array(buffer, byteOffset + before, words);
  for (let at = 0; at < words; at += PART_WORDS) count += countInWords(view, at, Math.min(at + PART_WORDS, words));
  return count;
}

/** Most words in one sum. Each word adds at most 1 to each byte of the sum, and a byte holds at most 255. */
const PART_WORDS = 255;
const NEWLINES = 0x0a0a0a0a;
const LOW_BITS = 0x7f7f7f7f;

function countInWords(words: Int32Array, from: number, to: number): number {
  let counts = 0;
  for (let at = from; at < to; at += 1) {
    const other = words[at]! ^ NEWLINES;
    // The highest bit of each byte that is zero, and no other bit.
    const isNewline = ~(((other & LOW_BITS) + LOW_BITS) | other | LOW_BITS);
    counts = (counts + (isNewline >>> 7)) | 0;
  }
  return (counts & 0xff) + ((counts >>> 8) & 0xff) + ((counts >>> 16) & 0xff) + (counts >>> 24);
}

function countBetween(bytes: Uint8Array, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at += 1) if (bytes[at] === NEWLINE) count += 1;
  return count;
}

/** Returns where the first `lines` lines end (after their newline), or the length when there are fewer. */
export function endOfLines(bytes: Uint8Array, lines: number): number {
  let left = lines;
  for (let at = 0; at < bytes.length && left > 0; at += 1) {
    if (bytes[at] !== NEWLINE) continue;
    left -= 1;
    if (left === 0) return at + 1;
  }
  return left <= 0 ? 0 : bytes.length;
}

/** Returns where the last `lines` lines start. A last line without a newline counts. */
export function startOfLastLines(bytes: Uint8Array, lines: number): number {
  if (lines <= 0) return bytes.length;
  let left = lines;
  for (let at = bytes.length - 2; at >= 0; at -= 1) {
    if (bytes[at] !== NEWLINE) continue;
    left -= 1;
    if (left === 0) return at + 1;
  }
  return 0;
}
