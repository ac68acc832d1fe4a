import { byteSet, HEX, indexOfByte, runStart } from '../bytes.ts';
import type { Rule, Source, View } from '../source.ts';

const NOT_AFTER = byteSet('A-Za-z0-9_:-');
const PART = byteSet('0-9A-Fa-f:-');
const COLON = 0x3a;
const HYPHEN = 0x2d;
const LENGTH = 17;

/** Six pairs of hex digits with the same separator. Parts of a longer fingerprint are not found. */
export function macAddresses(rule: Rule): Source {
  return {
    scan(view, findings) {
      const { bytes, from, to, end } = view;
      for (const separator of [COLON, HYPHEN]) {
        const last = Math.min(end, to + 2);
        for (
          let at = indexOfByte(bytes, separator, from + 2, last);
          at < last;
          at = indexOfByte(bytes, separator, at + 1, last)
        ) {
          const start = at - 2;
          if (NOT_AFTER[bytes[start - 1]!] === 1 || !isMac(bytes, start, end, separator)) continue;
          // The byte after it tells whether it is part of a longer fingerprint. openAtEnd reports shorter text as open.
          if (start + LENGTH < end || view.complete) {
            if (start + LENGTH === end || NOT_AFTER[bytes[start + LENGTH]!] === 0) {
              findings.found(rule, start, start, start + LENGTH);
            }
          }
        }
      }
      if (!view.complete) openAtEnd(view, (at) => findings.open(rule, at));
    },
    mayReadLeftOf: (bytes, at) => HEX[bytes[at]!] === 1,
  };
}

function isMac(bytes: Uint8Array, start: number, end: number, separator: number): boolean {
  if (start + LENGTH > end) return false;
  for (let index = 0; index < LENGTH; index += 1) {
    const byte = bytes[start + index]!;
    if (index % 3 === 2 ? byte !== separator : HEX[byte] === 0) return false;
  }
  return true;
}

function openAtEnd({ bytes, from, to, end }: View, open: (at: number) => void): void {
  for (let at = runStart(bytes, end, Math.max(from, end - LENGTH), PART); at < Math.min(to, end); at += 1) {
    if (HEX[bytes[at]!] === 0 || NOT_AFTER[bytes[at - 1]!] === 1 || !isBeginning(bytes, at, end)) continue;
    open(at);
    return;
  }
}

function isBeginning(bytes: Uint8Array, start: number, end: number): boolean {
  const separator = bytes[start + 2];
  for (let at = start; at < end; at += 1) {
    if ((at - start) % 3 === 2 ? bytes[at] !== separator || HEX[bytes[at]!] === 1 : HEX[bytes[at]!] === 0) return false;
  }
  return true;
}
