import { byteSet, DIGITS, HEX, runEnd, runStart, WORD } from '../bytes.ts';
import type { Findings, Rule, ScanWindow, Source } from '../source.ts';
import { SPOT } from '../spots.ts';

const NOT_AFTER_V4 = byteSet('A-Za-z0-9_.');
const NOT_AFTER_V6 = byteSet('A-Za-z0-9_.:');
const V4 = byteSet('0-9.');
const V6 = byteSet('0-9A-Fa-f:.');
const V6_FIRST = byteSet('0-9A-Fa-f:');
const MOST_V6 = 45;
const LEAST_V4 = 7;
/** Shortest length of an IPv6 address without `::`. */
const LEAST_WHOLE_V6 = 15;
const DOT = 0x2e;
const COLON = 0x3a;
const ZERO = 0x30;
const DOTS = byteSet('.');
const COLONS = byteSet(':');

/**
 * Finds IPv4 addresses of four octets and all forms of IPv6. Does not find times, MAC addresses, versions of five parts
 * or C++ names.
 */
export function ipAddresses(rule: Rule): Source {
  return {
    /** Marks the first dot between two digits, and the first colon before a hex digit or another colon. */
    mark(pairs) {
      pairs.addAll(DIGITS, DOTS, SPOT.ip);
      pairs.addAll(DOTS, DIGITS, SPOT.ip);
      pairs.addAll(HEX, COLONS, SPOT.ip);
      pairs.addAll(COLONS, V6_FIRST, SPOT.ip);
    },
    scan(window, findings) {
      const { bytes, spots } = window;
      for (let index = spots.next(0, SPOT.ip); index < spots.count; index = spots.next(index + 1, SPOT.ip)) {
        const at = spots.at[index]!;
        const byte = bytes[at];
        const next = bytes[at + 1];
        if (byte === DOT) checkV4(rule, window, at, findings);
        else if (next === DOT) checkV4(rule, window, at + 1, findings);
        else if (byte === COLON) {
          // If an address begins with `::` at an odd offset, only its second colon is in a marked pair.
          if (bytes[at - 1] === COLON && HEX[bytes[at - 2]!] !== 1) checkV6(rule, window, at - 1, findings);
          checkV6(rule, window, at, findings);
        } else if (next === COLON) checkV6(rule, window, at + 1, findings);
      }
      if (!window.complete) openAtEnd(rule, window, findings);
    },
    mayReadLeftOf(bytes, at, end) {
      const digits = runEnd(bytes, at, Math.min(end, at + 3), DIGITS);
      const hex = runEnd(bytes, at, Math.min(end, at + 4), HEX);
      return digits === end || hex === end || (digits > at && bytes[digits] === DOT) || bytes[hex] === COLON;
    },
  };
}

function checkV4(rule: Rule, window: ScanWindow, dot: number, findings: Findings): void {
  const { bytes, from, to, end } = window;
  if (dot <= from || dot >= Math.min(end, to + 4) || DIGITS[bytes[dot - 1]!] === 0) return;
  const start = runStart(bytes, dot, Math.max(from, dot - 3), DIGITS);
  if (start >= to || NOT_AFTER_V4[bytes[start - 1]!] === 1) return;
  const run = runEnd(bytes, start, Math.min(end, start + 16), V4);
  if (run === end && !window.complete) return;
  const last = bytes[run - 1] === DOT ? run - 1 : run;
  if (run - start > 15 + (run - last) || WORD[byteAt(window, last)] === 1) return;
  if (last - start < LEAST_V4) return;
  if (isV4(bytes, start, last)) findings.found(rule, start, start, last);
}

function checkV6(rule: Rule, window: ScanWindow, colon: number, findings: Findings): void {
  const { bytes, from, to, end } = window;
  if (colon < from || colon >= Math.min(end, to + 5)) return;
  const start = runStart(bytes, colon, Math.max(from, colon - 4), HEX);
  if (start >= to || NOT_AFTER_V6[bytes[start - 1]!] === 1) return;
  const run = runEnd(bytes, start, Math.min(end, start + MOST_V6 + 1), V6);
  if (run === end && !window.complete) return;
  const last = trimPunctuation(bytes, start, run);
  if (last - start > MOST_V6 || WORD[byteAt(window, last)] === 1) return;
  if (last - start < LEAST_WHOLE_V6 && !hasDoubleColon(bytes, start, last)) return;
  if (isV6(bytes, start, last)) findings.found(rule, start, start, last);
}

function hasDoubleColon(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from + 1; at < to; at += 1) if (bytes[at] === COLON && bytes[at - 1] === COLON) return true;
  return false;
}

/**
 * Returns the end of the address without the punctuation of a sentence or of a `key:`. A trailing `::` is a part of the
 * address.
 */
function trimPunctuation(bytes: Uint8Array, from: number, end: number): number {
  const last = bytes[end - 1];
  if (last === DOT) return end - 1;
  return last === COLON && end - from > 2 && bytes[end - 2] !== COLON ? end - 1 : end;
}

function byteAt({ bytes, end }: ScanWindow, at: number): number {
  return at < end ? bytes[at]! : 0;
}

/** Reports as open an address that may begin at the end of the text. */
function openAtEnd(rule: Rule, { bytes, from, to, end }: ScanWindow, findings: Findings): void {
  for (let at = runStart(bytes, end, Math.max(from, end - MOST_V6 - 1), V6); at < Math.min(to, end); at += 1) {
    const notAfter = DIGITS[bytes[at]!] === 1 ? NOT_AFTER_V4 : NOT_AFTER_V6;
    if (V6_FIRST[bytes[at]!] === 0 || notAfter[bytes[at - 1]!] === 1) continue;
    findings.open(rule, at);
    return;
  }
}

/** Tells whether the text is four numbers of at most 255, without leading zeros. */
function isV4(bytes: Uint8Array, from: number, to: number): boolean {
  let at = from;
  for (let octet = 0; octet < 4; octet += 1) {
    const start = at;
    let number = 0;
    for (; at < to && at - start < 4 && DIGITS[bytes[at]!] === 1; at += 1) number = number * 10 + bytes[at]! - ZERO;
    if (at === start || number > 255 || (bytes[start] === ZERO && at > start + 1)) return false;
    if (octet < 3 && (at >= to || bytes[at] !== DOT)) return false;
    at += octet < 3 ? 1 : 0;
  }
  return at === to;
}

/** Tells whether the text is groups of up to four hex digits, with at most one `::`, and perhaps IPv4 at the end. */
function isV6(bytes: Uint8Array, from: number, to: number): boolean {
  // A C++ name such as `a::b` has the form of an address, but no digit.
  if (!hasDigit(bytes, from, to)) return false;
  const beginsWithGap = isDoubleColon(bytes, from, to);
  let hasGap = beginsWithGap;
  let groups = 0;
  for (let at = beginsWithGap ? from + 2 : from; at < to; ) {
    const end = runEnd(bytes, at, to, HEX);
    if (bytes[end] === DOT && end < to) return isV4(bytes, at, to) && isWhole(groups + 2, hasGap);
    if (end === at || end - at > 4) return false;
    groups += 1;
    if (end === to) break;
    const isGap = isDoubleColon(bytes, end, to);
    if (isGap ? hasGap : bytes[end] !== COLON || end + 1 === to) return false;
    hasGap ||= isGap;
    at = end + (isGap ? 2 : 1);
  }
  return isWhole(groups, hasGap);
}

function isWhole(groups: number, hasGap: boolean): boolean {
  return hasGap ? groups <= 7 : groups === 8;
}

function isDoubleColon(bytes: Uint8Array, at: number, to: number): boolean {
  return at + 1 < to && bytes[at] === COLON && bytes[at + 1] === COLON;
}

function hasDigit(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (DIGITS[bytes[at]!] === 1) return true;
  return false;
}
