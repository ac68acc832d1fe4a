import { ALPHANUMERICS, ANY, byteSet, LETTERS, runEnd, runStart } from '../bytes.ts';
import type { Findings, Rule, ScanWindow, Source } from '../source.ts';
import { SPOT } from '../spots.ts';

const LOCAL = byteSet('A-Za-z0-9._%+-');
const LOCAL_FIRST = byteSet('A-Za-z0-9_');
const LABEL = byteSet('A-Za-z0-9-');
const DOMAIN = byteSet('A-Za-z0-9.-');
/** Longest local part, by RFC 5321. If a local part is longer, only its last 64 characters are redacted. */
const MOST_LOCAL = 64;
const MOST_DOMAIN = 255;
const AT = 0x40;
const HYPHEN = 0x2d;
const AT_SIGN = byteSet('@');

/**
 * Finds addresses of the form name@host.tld. Characters outside ASCII end an address, so an address next to CJK text is
 * found too.
 */
export function emails(rule: Rule): Source {
  return {
    mark(pairs) {
      pairs.addAll(AT_SIGN, ANY, SPOT.email);
      pairs.addAll(ANY, AT_SIGN, SPOT.email);
    },
    scan(window, findings) {
      const { bytes, from, to, end, spots } = window;
      const lastAt = Math.min(end, to + MOST_LOCAL + 1);
      for (let index = spots.next(0, SPOT.email); index < spots.count; index = spots.next(index + 1, SPOT.email)) {
        const first = Math.max(from, spots.at[index]!);
        const last = Math.min(lastAt, spots.at[index]! + 2);
        for (let at = first; at < last; at += 1) {
          if (bytes[at] === AT && check(rule, window, at, findings) === 'open') return;
        }
      }
      if (window.complete) return;
      const start = localStart(window, end);
      if (start < Math.min(to, end)) findings.open(rule, start);
    },
    mayReadLeftOf: () => false,
  };
}

function check(rule: Rule, window: ScanWindow, at: number, findings: Findings): 'open' | undefined {
  const { bytes, to, end } = window;
  const start = localStart(window, at);
  if (start === at || start >= to) return undefined;
  const domainMost = Math.min(end, at + 1 + MOST_DOMAIN);
  const domainRun = runEnd(bytes, at + 1, domainMost, DOMAIN);
  if (domainRun === end && !window.complete) {
    findings.open(rule, start);
    return 'open';
  }
  const domainEnd = endOfDomain(bytes, at + 1, domainRun);
  if (domainEnd !== undefined) findings.found(rule, start, start, domainEnd);
  return undefined;
}

/** Returns the beginning of the local part that ends at `end`, or `end` if there is none. */
function localStart({ bytes, from }: ScanWindow, end: number): number {
  let start = runStart(bytes, end, Math.max(from, end - MOST_LOCAL), LOCAL);
  while (start < end && LOCAL_FIRST[bytes[start]!] === 0) start += 1;
  return start;
}

/** Returns the end of the longest domain that begins at `from`: labels, of which the last has at least two letters. */
function endOfDomain(bytes: Uint8Array, from: number, to: number): number | undefined {
  let end: number | undefined;
  for (let label = from; label < to; ) {
    const labelEnd = runEnd(bytes, label, to, LABEL);
    const name = trimHyphens(bytes, label, labelEnd);
    if (name === label) break;
    if (label > from && isTopLevel(bytes, label, name)) end = name;
    if (name < labelEnd) break;
    label = labelEnd + 1;
  }
  return end;
}

function trimHyphens(bytes: Uint8Array, from: number, to: number): number {
  if (ALPHANUMERICS[bytes[from]!] === 0) return from;
  let end = to;
  while (end > from && bytes[end - 1] === HYPHEN) end -= 1;
  return end;
}

function isTopLevel(bytes: Uint8Array, from: number, to: number): boolean {
  if (to - from < 2) return false;
  if (runEnd(bytes, from, to, LETTERS) === to) return true;
  return to - from > 4 && bytes.subarray(from, from + 4).toString() === 'xn--';
}
