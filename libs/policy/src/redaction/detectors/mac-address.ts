import { byteSet, HEX, runStart } from '../bytes.ts';
import type { Findings, Rule, ScanWindow, Source } from '../source.ts';
import { SPOT } from '../spots.ts';

const NOT_AFTER = byteSet('A-Za-z0-9_:-');
const PART = byteSet('0-9A-Fa-f:-');
const SEPARATOR = byteSet(':-');
const LENGTH = 17;

/** Finds six pairs of hex digits with the same separator, but not as a part of a longer fingerprint. */
export function macAddresses(rule: Rule): Source {
  return {
    /**
     * Marks each pair of a hex digit and a separator. One of the first two separators of an address is at an odd
     * offset, so one of its pairs is found.
     */
    mark: (pairs) => pairs.addAll(HEX, SEPARATOR, SPOT.mac),
    scan(window, findings) {
      const { bytes, spots } = window;
      for (let index = spots.next(0, SPOT.mac); index < spots.count; index = spots.next(index + 1, SPOT.mac)) {
        const at = spots.at[index]! + 1;
        if (bytes[at + 3] !== bytes[at]) continue;
        check(rule, window, at - 5, findings);
        check(rule, window, at - 2, findings);
      }
      if (!window.complete) openAtEnd(window, (at) => findings.open(rule, at));
    },
    mayReadLeftOf: (bytes, at, end) => isBeginning(bytes, at, Math.min(end, at + 3)),
  };
}

function check(rule: Rule, { bytes, from, to, end, complete }: ScanWindow, start: number, findings: Findings): void {
  if (start < from || start >= to || NOT_AFTER[bytes[start - 1]!] === 1 || !isMac(bytes, start, end)) return;
  // Only the next byte shows whether the text is a part of a longer fingerprint. If it is missing, openAtEnd reports
  // the text as open.
  const after = start + LENGTH;
  if (after === end ? !complete : NOT_AFTER[bytes[after]!] === 1) return;
  findings.found(rule, start, start, after);
}

function isMac(bytes: Uint8Array, start: number, end: number): boolean {
  const separator = bytes[start + 2]!;
  if (start + LENGTH > end || SEPARATOR[separator] === 0) return false;
  for (let index = 0; index < LENGTH; index += 1) {
    const byte = bytes[start + index]!;
    if (index % 3 === 2 ? byte !== separator : HEX[byte] === 0) return false;
  }
  return true;
}

function openAtEnd({ bytes, from, to, end }: ScanWindow, open: (at: number) => void): void {
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
