import type { Anchor } from '../anchor-scan.ts';
import type { Rule } from '../source.ts';
import { exactEncodings, wrappableEncodings } from './encodings.ts';
import { escapedForms, percentForms, tolerantAnchors, wrappedForms } from './tolerant-needle.ts';

/** A shorter secret would be found by chance all over the output. */
export const SHORTEST_SECRET_CHARS = 6;
/** A longer text is looked for in pieces: in all its forms none may be longer than what a redactor holds. */
const LONGEST_NEEDLE_BYTES = 8 * 1024;

/** A value with more lines is looked for as a whole only: every line is compared wherever one begins like it. */
const MOST_SINGLE_LINES = 200;

/** What to look for so that `value` is found however it is written; undefined if it is too short. */
export function needlesOf(value: string, rule: Rule): Anchor[] | undefined {
  if (isShort(value)) return undefined;
  const texts = [...textsOf(value), ...linesOf(value)];
  const exact = piecesOf(texts.flatMap(exactEncodings));
  // However short: it may stand in the middle of something long, and a line end in the middle of it.
  const wrappable = piecesOf(texts.flatMap(wrappableEncodings));
  const special = piecesOf(texts.filter((text) => /[^A-Za-z0-9]/.test(text)));
  return [
    ...exact.map((bytes) => ({ rule, bytes })),
    ...wrappable.flatMap((needle) => tolerantAnchors(rule, needle, wrappedForms)),
    ...special.flatMap((needle) => tolerantAnchors(rule, needle, percentForms)),
    ...special.flatMap((needle) => tolerantAnchors(rule, needle, escapedForms)),
  ];
}

function piecesOf(texts: readonly string[]): Buffer[] {
  const pieces = new Map<string, Buffer>();
  for (const bytes of texts.map((text) => Buffer.from(text))) {
    for (let from = 0; from < bytes.length; from += LONGEST_NEEDLE_BYTES) {
      const piece = bytes.subarray(from, from + LONGEST_NEEDLE_BYTES);
      if (piece.length >= SHORTEST_SECRET_CHARS) pieces.set(piece.toString('latin1'), piece);
    }
  }
  return [...pieces.values()];
}

/** The value; without the newline at its end; with the newlines of a terminal. */
function textsOf(value: string): string[] {
  const unix = value.split(/\r?\n/).join('\n');
  const texts = [value, unix, unix.trim()];
  texts.push(...texts.map((text) => text.replace(/\r?\n/g, '\r\n')));
  return [...new Set(texts)].filter((text) => !isShort(text));
}

/** Each line, with and without its blanks, if there are several. */
function linesOf(value: string): string[] {
  const lines = value.split(/\r?\n/);
  if (lines.length === 1 || lines.length > MOST_SINGLE_LINES) return [];
  return [...new Set(lines.flatMap((line) => [line, line.trim()]))].filter((line) => !isShort(line));
}

function isShort(text: string): boolean {
  return [...text].length < SHORTEST_SECRET_CHARS;
}
