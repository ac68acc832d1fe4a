import { byteSet, DIGITS, HEX, indexOfByte, runEnd, runStart, WORD } from '../bytes.ts';
import type { Findings, Rule, Source, View } from '../source.ts';

const NOT_AFTER_V4 = byteSet('A-Za-z0-9_.');
const NOT_AFTER_V6 = byteSet('A-Za-z0-9_.:');
const V4 = byteSet('0-9.');
const V6 = byteSet('0-9A-Fa-f:.');
const V6_FIRST = byteSet('0-9A-Fa-f:');
const MOST_V6 = 45;
const LEAST_V4 = 7;
/** The number of groups without `::`. */
const LEAST_WHOLE_V6 = 15;
const DOT = 0x2e;
const COLON = 0x3a;

/** IPv4 with four octets, and IPv6 in every form. Times, MAC addresses, versions of five parts and C++ names are not found. */
export function ipAddresses(rule: Rule): Source {
  return {
    scan(view, findings) {
      scanV4(rule, view, findings);
      scanV6(rule, view, findings);
      if (!view.complete) openAtEnd(rule, view, findings);
    },
    mayReadLeftOf: (bytes, at) => V6_FIRST[bytes[at]!] === 1,
  };
}

function scanV4(rule: Rule, view: View, findings: Findings): void {
  const { bytes, from, to, end } = view;
  const lastDot = Math.min(end, to + 4);
  for (
    let dot = indexOfByte(bytes, DOT, from + 1, lastDot);
    dot < lastDot;
    dot = indexOfByte(bytes, DOT, dot + 1, lastDot)
  ) {
    if (DIGITS[bytes[dot - 1]!] === 0) continue;
    const start = runStart(bytes, dot, Math.max(from, dot - 3), DIGITS);
    if (start >= to || NOT_AFTER_V4[bytes[start - 1]!] === 1) continue;
    const run = runEnd(bytes, start, Math.min(end, start + 16), V4);
    if (run === end && !view.complete) continue;
    const last = bytes[run - 1] === DOT ? run - 1 : run;
    if (run - start > 15 + (run - last) || WORD[byteAt(view, last)] === 1) continue;
    if (last - start < LEAST_V4) continue;
    if (isV4(bytes.toString('latin1', start, last))) findings.found(rule, start, start, last);
  }
}

function scanV6(rule: Rule, view: View, findings: Findings): void {
  const { bytes, from, to, end } = view;
  const lastColon = Math.min(end, to + 5);
  for (
    let colon = indexOfByte(bytes, COLON, from, lastColon);
    colon < lastColon;
    colon = indexOfByte(bytes, COLON, colon + 1, lastColon)
  ) {
    const start = runStart(bytes, colon, Math.max(from, colon - 4), HEX);
    if (start >= to || NOT_AFTER_V6[bytes[start - 1]!] === 1) continue;
    const run = runEnd(bytes, start, Math.min(end, start + MOST_V6 + 1), V6);
    if (run === end && !view.complete) continue;
    const last = trimPunctuation(bytes, start, run);
    if (last - start > MOST_V6 || WORD[byteAt(view, last)] === 1) continue;
    if (last - start < LEAST_WHOLE_V6 && !hasDoubleColon(bytes, start, last)) continue;
    if (isV6(bytes.toString('latin1', start, last))) findings.found(rule, start, start, last);
  }
}

function hasDoubleColon(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from + 1; at < to; at += 1) if (bytes[at] === COLON && bytes[at - 1] === COLON) return true;
  return false;
}

/** The end without the punctuation of a sentence or of a `key:`. A trailing `::` is part of the address. */
function trimPunctuation(bytes: Uint8Array, from: number, end: number): number {
  const last = bytes[end - 1];
  if (last === DOT) return end - 1;
  return last === COLON && end - from > 2 && bytes[end - 2] !== COLON ? end - 1 : end;
}

function byteAt({ bytes, end }: View, at: number): number {
  return at < end ? bytes[at]! : 0;
}

/** Reports as open an address that may begin at the end of the text. */
function openAtEnd(rule: Rule, { bytes, from, to, end }: View, findings: Findings): void {
  for (let at = runStart(bytes, end, Math.max(from, end - MOST_V6 - 1), V6); at < Math.min(to, end); at += 1) {
    const notAfter = DIGITS[bytes[at]!] === 1 ? NOT_AFTER_V4 : NOT_AFTER_V6;
    if (V6_FIRST[bytes[at]!] === 0 || notAfter[bytes[at - 1]!] === 1) continue;
    findings.open(rule, at);
    return;
  }
}

function isV4(text: string): boolean {
  const octets = text.split('.');
  return octets.length === 4 && octets.every((octet) => /^(?:0|[1-9][0-9]{0,2})$/.test(octet) && Number(octet) <= 255);
}

function isV6(text: string): boolean {
  // A C++ name such as `a::b` has the form of an address, but no digit.
  if (!/[0-9]/.test(text)) return false;
  const halves = text.split('::');
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  const last = groups.at(-1) ?? '';
  const dotted = last.includes('.');
  if (dotted && (!isV4(last) || text.endsWith('::'))) return false;
  const hextets = dotted ? groups.slice(0, -1) : groups;
  if (!hextets.every((hextet) => /^[0-9A-Fa-f]{1,4}$/.test(hextet))) return false;
  const length = hextets.length + (dotted ? 2 : 0);
  return halves.length === 2 ? length <= 7 : length === 8;
}
