import { ALPHANUMERICS, byteSet, DIGITS, runEnd, runStart, WORD } from '../bytes.ts';
import type { Findings, Rule, Source, View } from '../source.ts';

/** A number after one of these is no card: it is part of a word, or the decimals of a fraction. */
const NOT_AFTER = byteSet('A-Za-z0-9_.');
const NUMBER = byteSet('0-9 -');
const LEAST_DIGITS = 13;
const MOST_DIGITS = 19;
const STRIDE = 12;
const SPACE = 0x20;
const HYPHEN = 0x2d;
const DOT = 0x2e;
/** The groups of digits on cards of the brands, the longest first. */
const GROUPINGS = [
  [4, 4, 4, 4, 3],
  [4, 4, 4, 4, 2],
  [4, 4, 4, 4, 1],
  [4, 4, 4, 4],
  [4, 6, 5],
  [4, 6, 4],
  [4, 4, 5],
];

/** 13 to 19 digits with a valid Luhn checksum, in one run or in the groups of a card, separated by spaces or hyphens. */
export function creditCards(rule: Rule): Source {
  return {
    scan(view, findings) {
      // A card that begins before `to` begins with a digit before `to`.
      const limit = Math.min(view.end, view.to + STRIDE);
      for (let at = view.from; at < view.to; ) {
        const digit = nextDigit(view.bytes, at, limit);
        const start = runStart(view.bytes, digit, at, NUMBER);
        at = scanNumbers(rule, view, start, findings);
        if (digit >= limit) return;
      }
    },
    mayReadLeftOf: (bytes, at) => DIGITS[bytes[at]!] === 1,
  };
}

/**
 * The offset of a digit of the next card, or `limit`. A card has at least 13 characters, and at least one of two neighbours is
 * a digit. So it is enough to read two of every twelve characters.
 */
function nextDigit(bytes: Uint8Array, from: number, limit: number): number {
  for (let at = from; at < limit; at += STRIDE) {
    if (DIGITS[bytes[at]!] === 1) return at;
    if (DIGITS[bytes[at + 1]!] === 1 && at + 1 < limit) return at + 1;
  }
  return limit;
}

/** Reports the cards among the numbers that follow each other from `from` on. Returns their end. */
function scanNumbers(rule: Rule, view: View, from: number, findings: Findings): number {
  const { bytes, to, end } = view;
  let at = from;
  const runOut = runEnd(bytes, from, end, NUMBER);
  if (runOut < end && !hasDigits(bytes, from, runOut, LEAST_DIGITS)) return runOut + 1;
  while (at < to && NUMBER[bytes[at]!] === 1) {
    if (DIGITS[bytes[at]!] === 0) {
      at += 1;
      continue;
    }
    const groups = NOT_AFTER[bytes[at - 1]!] === 1 ? [] : readGroups(view, at);
    if (groups === 'open') {
      findings.open(rule, at);
      return end;
    }
    const cardEnd = endOfCard(view, at, groups);
    if (cardEnd !== undefined) findings.found(rule, at, at, cardEnd);
    at = cardEnd ?? runEnd(bytes, at, end, ALPHANUMERICS);
  }
  return Math.max(at, from + 1);
}

function hasDigits(bytes: Uint8Array, from: number, to: number, wanted: number): boolean {
  let missing = wanted;
  for (let at = from; at < to && missing > 0; at += 1) missing -= DIGITS[bytes[at]!]!;
  return missing <= 0;
}

interface Group {
  digits: number;
  end: number;
}

/** Runs of digits with the same separator between them, as many as are needed to decide. */
function readGroups({ bytes, end, complete }: View, from: number): Group[] | 'open' {
  const groups: Group[] = [];
  let separator: number | undefined;
  let at = from;
  for (let digits = 0; digits <= MOST_DIGITS && groups.length < 6; ) {
    const start = at;
    while (at < end && at - start <= MOST_DIGITS && DIGITS[bytes[at]!] === 1) at += 1;
    if (at === start) break;
    // Whether digits follow a full stop or a separator is known only from the byte after it.
    if (at + 1 >= end && !complete) return 'open';
    digits += at - start;
    groups.push({ digits: at - start, end: at });
    const next = at < end ? bytes[at]! : 0;
    if (next !== (separator ?? (next === HYPHEN ? HYPHEN : SPACE))) break;
    separator = next;
    at += 1;
  }
  return groups;
}

function endOfCard(view: View, at: number, groups: readonly Group[]): number | undefined {
  const candidates = GROUPINGS.filter((grouping) =>
    grouping.every((digits, index) => groups[index]?.digits === digits),
  );
  const ends = candidates.map((grouping) => groups[grouping.length - 1]!.end);
  if (groups[0] && isCardLength(groups[0].digits)) ends.push(groups[0].end);
  return ends.find((end) => isCard(view, at, end));
}

function isCardLength(digits: number): boolean {
  return digits >= LEAST_DIGITS && digits <= MOST_DIGITS;
}

function isCard({ bytes, end: viewEnd }: View, at: number, end: number): boolean {
  const next = end < viewEnd ? bytes[end]! : SPACE;
  const afterNext = end + 1 < viewEnd ? bytes[end + 1]! : SPACE;
  if (WORD[next] === 1 || ((next === DOT || next === HYPHEN) && DIGITS[afterNext] === 1)) return false;
  const digits = [...bytes.subarray(at, end)].filter((byte) => DIGITS[byte] === 1).map((byte) => byte - 0x30);
  // Numbers of 16 digits may begin with any digit but 0. Those of other lengths are mostly timestamps.
  const first = digits[0]!;
  const issued = digits.length === 16 ? first !== 0 : first >= 2 && first <= 6;
  return issued && passesLuhn(digits);
}

function passesLuhn(digits: readonly number[]): boolean {
  const sum = digits.reduceRight((total, digit, index) => {
    const doubled = (digits.length - index) % 2 === 0 ? digit * 2 : digit;
    return total + (doubled > 9 ? doubled - 9 : doubled);
  }, 0);
  return sum % 10 === 0;
}
