const NEWLINE = 10;

// A plain loop, because one indexOf call per line is several times slower for short lines. Without a branch, because branch prediction
// fails for short lines and for random bytes.
export function countNewlines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at += PART_BYTES)
    count += countBetween(bytes, at, Math.min(at + PART_BYTES, bytes.length));
  return count;
}

/** In parts: a loop over a whole chunk is compiled while it runs, in its caller, and the result is often half as fast. */
const PART_BYTES = 1024;

function countBetween(bytes: Uint8Array, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at += 1) count += ((bytes[at]! ^ NEWLINE) - 1) >>> 31;
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
