const NEWLINE = 10;

// A plain loop, because one indexOf call per line is several times slower for short lines. Without a branch, because branch prediction
// fails for short lines and for random bytes.
export function countNewlines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = 0, { length } = bytes; at < length; at += 1) count += ((bytes[at]! ^ NEWLINE) - 1) >>> 31;
  return count;
}

/** Where the first `lines` lines end (after their newline); the whole length when there are fewer. */
export function endOfLines(bytes: Uint8Array, lines: number): number {
  let left = lines;
  for (let at = 0; at < bytes.length && left > 0; at += 1) {
    if (bytes[at] !== NEWLINE) continue;
    left -= 1;
    if (left === 0) return at + 1;
  }
  return left <= 0 ? 0 : bytes.length;
}

/** Where the last `lines` lines start. A last line without a newline counts. */
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
