import { ALPHANUMERICS, byteSet, DIGITS, runEnd, runStart, WORD } from '../bytes.ts';
import type { Findings, Rule, ScanWindow, Source } from '../source.ts';

/** Bytes before a number that make it a part of a word or the decimals of a fraction. */
const NOT_AFTER = byteSet('A-Za-z0-9_.');
const NUMBER = byteSet('0-9 -');
const LEAST_DIGITS = 13;
const MOST_DIGITS = 19;
const STRIDE = 12;
const ZERO = 0x30;
const SPACE = 0x20;
const HYPHEN = 0x2d;
const DOT = 0x2e;
const FIRST_GROUP = 4;
/** Sizes of the groups of digits as card brands print them, the longest first. */
const GROUPINGS = [
  [4, 4, 4, 4, 3],
  [4, 4, 4, 4, 2],
  [4, 4, 4, 4, 1],
  [4, 4, 4, 4],
  [4, 6, 5],
  [4, 6, 4],
  [4, 4, 5],
];

/** Finds 13 to 19 digits with a valid Luhn checksum, in one run or in groups separated by spaces or hyphens. */
export function creditCards(rule: Rule): Source {
  return {
    scan(window, findings) {
      // A card that begins before `to` has a digit before `to`, so the search for its digits ends soon after `to`.
      const limit = Math.min(window.end, window.to + STRIDE);
      for (let at = window.from; at < window.to; ) {
        const digit = nextDigit(window.bytes, at + STRIDE - 1, limit);
        const start = runStart(window.bytes, digit, at, NUMBER);
        at = scanNumbers(rule, window, start, findings);
        if (digit >= limit) return;
      }
    },
    mayReadLeftOf: (bytes, at) => DIGITS[bytes[at]!] === 1,
  };
}

/**
 * Returns the offset of some digit of the next card, or `limit`. Only two of every twelve characters are read: a card
 * has at least 13 characters, and no two neighbours are both separators.
 */
function nextDigit(bytes: Uint8Array, from: number, limit: number): number {
  for (let at = from; at < limit; at += STRIDE) {
    if (DIGITS[bytes[at]!] === 1) return at;
    if (DIGITS[bytes[at + 1]!] === 1 && at + 1 < limit) return at + 1;
  }
  return limit;
}

/**
 * Reports the cards among adjacent numbers, beginning at `from`. Returns the offset where the next number may begin.
 */
function scanNumbers(rule: Rule, window: ScanWindow, from: number, findings: Findings): number {
  const { bytes, to, end } = window;
  const runOut = runEnd(bytes, from, end, NUMBER);
  const last = runOut < end ? lastStart(bytes, from, runOut) : end - 1;
  let at = from;
  while (at < to && at <= last) {
    if (DIGITS[bytes[at]!] === 0) {
      at += 1;
      continue;
    }
    const groups = NOT_AFTER[bytes[at - 1]!] === 1 || !mayBegin(window, at) ? 0 : readGroups(window, at);
    if (groups === 'open') {
      findings.open(rule, at);
      return end;
    }
    const cardEnd = endOfCard(window, at, groups);
    if (cardEnd !== undefined) findings.found(rule, at, at, cardEnd);
    at = cardEnd ?? runEnd(bytes, at, end, ALPHANUMERICS);
  }
  return Math.max(at, runOut + 1);
}

/** Returns the last offset from which there are enough digits for a card, or `from - 1`. */
function lastStart(bytes: Uint8Array, from: number, to: number): number {
  let missing = LEAST_DIGITS;
  let at = to;
  while (missing > 0 && at - from >= missing) {
    at -= 1;
    missing -= DIGITS[bytes[at]!]!;
  }
  return missing > 0 ? from - 1 : at;
}

/** Tells whether a card may begin at `at`: with a group of four digits, or with all digits of a card in one run. */
function mayBegin({ bytes, end, complete }: ScanWindow, at: number): boolean {
  const digits = runEnd(bytes, at, Math.min(end, at + MOST_DIGITS + 1), DIGITS) - at;
  if (at + digits + 1 >= end && !complete) return true;
  return digits === FIRST_GROUP || (digits >= LEAST_DIGITS && digits <= MOST_DIGITS);
}

/** The groups of digits that were read last. All scans share them, because scans are synchronous. */
const MOST_GROUPS = 6;
const GROUP_DIGITS = new Int32Array(MOST_GROUPS);
const GROUP_ENDS = new Int32Array(MOST_GROUPS);

/**
 * Reads runs of digits with the same separator between them, as many as the decision needs. Returns the number of runs.
 */
function readGroups({ bytes, end, complete }: ScanWindow, from: number): number | 'open' {
  let groups = 0;
  let separator: number | undefined;
  let at = from;
  for (let digits = 0; digits <= MOST_DIGITS && groups < MOST_GROUPS; ) {
    const start = at;
    while (at < end && at - start <= MOST_DIGITS && DIGITS[bytes[at]!] === 1) at += 1;
    if (at === start) break;
    // Only the next byte tells whether digits follow a full stop or a separator.
    if (at + 1 >= end && !complete) return 'open';
    digits += at - start;
    GROUP_DIGITS[groups] = at - start;
    GROUP_ENDS[groups] = at;
    groups += 1;
    const next = at < end ? bytes[at]! : 0;
    if (next !== (separator ?? (next === HYPHEN ? HYPHEN : SPACE))) break;
    separator = next;
    at += 1;
  }
  return groups;
}

function endOfCard(window: ScanWindow, at: number, groups: number): number | undefined {
  if (groups === 0) return undefined;
  for (const grouping of GROUPINGS) {
    if (!isGroupedAs(grouping, groups)) continue;
    const end = GROUP_ENDS[grouping.length - 1]!;
    if (isCard(window, at, end)) return end;
  }
  const digits = GROUP_DIGITS[0]!;
  const isWhole = digits >= LEAST_DIGITS && digits <= MOST_DIGITS && isCard(window, at, GROUP_ENDS[0]!);
  return isWhole ? GROUP_ENDS[0] : undefined;
}

function isGroupedAs(grouping: readonly number[], groups: number): boolean {
  if (grouping.length > groups) return false;
  for (let index = 0; index < grouping.length; index += 1) if (GROUP_DIGITS[index] !== grouping[index]) return false;
  return true;
}

function isCard({ bytes, end: viewEnd }: ScanWindow, at: number, end: number): boolean {
  const next = end < viewEnd ? bytes[end]! : SPACE;
  const afterNext = end + 1 < viewEnd ? bytes[end + 1]! : SPACE;
  if (WORD[next] === 1 || ((next === DOT || next === HYPHEN) && DIGITS[afterNext] === 1)) return false;
  let digits = 0;
  let sum = 0;
  for (let index = end - 1; index >= at; index -= 1) {
    if (DIGITS[bytes[index]!] === 0) continue;
    const digit = bytes[index]! - ZERO;
    digits += 1;
    // Luhn's checksum doubles every second digit from the end, and adds the digits of the results.
    sum += digits % 2 === 1 ? digit : digit > 4 ? 2 * digit - 9 : 2 * digit;
  }
  // Numbers of 16 digits may begin with any digit but 0. Numbers of other lengths are mostly timestamps.
  const first = bytes[at]! - ZERO;
  const issued = digits === 16 ? first !== 0 : first >= 2 && first <= 6;
  return issued && sum % 10 === 0;
}
