import { isUtf8 } from 'node:buffer';

// Size of bytes as text in JSON: an escaped control character takes six bytes, an invalid byte becomes U+FFFD (three),
// base64 takes four bytes for three. It is counted without encoding, which would copy several megabytes.

export type TextUnit = 'characters' | 'bytes';

export const MOST_JSON_PER_BYTE = 6;

/** Returns an upper bound of the size in JSON. It is exact for valid UTF-8. */
export function jsonSize(bytes: Uint8Array, unit: TextUnit): number {
  if (unit === 'bytes') return base64Size(bytes.length);
  const sizes = sizesOf(bytes);
  let size = 0;
  for (let at = 0; at < bytes.length; at += 1) size += sizes[bytes[at]!]!;
  return size;
}

/** Returns how many of the first bytes take at most `most` in JSON. */
export function firstWithin(bytes: Uint8Array, most: number, unit: TextUnit): number {
  if (unit === 'bytes') return Math.min(bytes.length, base64Capacity(most));
  const sizes = sizesOf(bytes);
  let left = most;
  let at = 0;
  for (; at < bytes.length; at += 1) {
    left -= sizes[bytes[at]!]!;
    if (left < 0) break;
  }
  return at;
}

/** Returns how many of the last bytes take at most `most` in JSON. */
export function lastWithin(bytes: Uint8Array, most: number, unit: TextUnit): number {
  if (unit === 'bytes') return Math.min(bytes.length, base64Capacity(most));
  const sizes = sizesOf(bytes);
  let left = most;
  let count = 0;
  for (; count < bytes.length; count += 1) {
    left -= sizes[bytes[bytes.length - 1 - count]!]!;
    if (left < 0) break;
  }
  return count;
}

function base64Size(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

function base64Capacity(characters: number): number {
  return Math.max(0, Math.floor(characters / 4) * 3);
}

function sizesOf(bytes: Uint8Array): Uint8Array {
  return isUtf8(bytes) ? VALID_SIZES : INVALID_SIZES;
}

const VALID_SIZES = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 128 ? JSON.stringify(String.fromCharCode(byte)).length - 2 : 1,
);
const INVALID_SIZES = VALID_SIZES.map((size, byte) => (byte < 128 ? size : 3));
