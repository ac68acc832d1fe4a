import type { Anchor } from '../anchor-scan.ts';
import type { Rule } from '../source.ts';
import { exactEncodings, fullyEscaped, wrappableEncodings } from './encodings.ts';
import {
  escapedForms,
  percentForms,
  SEPARATED_HEX_ANCHOR_BYTES,
  separatedHexForms,
  tolerantAnchors,
  wrappedForms,
} from './tolerant-needle.ts';

/** Least length in characters. A shorter secret would be found by chance all over the output. */
export const SHORTEST_SECRET_CHARS = 6;
/**
 * Longest text that is searched for as a whole. A longer text is searched for in pieces, because an encoded piece must
 * fit into the bytes that a redactor may hold.
 */
const LONGEST_NEEDLE_BYTES = 8 * 1024;

/** Most lines of a value that are also searched for one by one. Lines that begin alike are all compared at each hit. */
const MOST_SINGLE_LINES = 200;

/** Returns the texts that find `value` in every form that docs/output.md lists, or undefined if it is too short. */
export function needlesOf(value: string, rule: Rule): Anchor[] | undefined {
  if (isShort(value)) return undefined;
  const whole = textsOf(value);
  const texts = [...whole, ...linesOf(value)];
  const exact = piecesOf([...texts.flatMap(exactEncodings), ...whole.flatMap(fullyEscaped)]);
  // A short value may be inside a longer encoded text that line breaks interrupt anywhere, so this is done for every
  // value.
  const wrappable = piecesOf(texts.flatMap(wrappableEncodings));
  const special = piecesOf(texts.filter((text) => /[^A-Za-z0-9]/.test(text)));
  return [
    ...exact.map((bytes) => ({ rule, bytes })),
    ...wrappable.flatMap((needle) => tolerantAnchors(rule, needle, wrappedForms)),
    ...piecesOf(whole).flatMap((needle) =>
      tolerantAnchors(rule, needle, separatedHexForms, SEPARATED_HEX_ANCHOR_BYTES),
    ),
    ...special.flatMap((needle) => tolerantAnchors(rule, needle, percentForms)),
    ...special.flatMap((needle) => tolerantAnchors(rule, needle, escapedForms)),
  ];
}

function piecesOf(texts: readonly (string | Buffer)[]): Buffer[] {
  const pieces = new Map<string, Buffer>();
  for (const bytes of texts.map((text) => (typeof text === 'string' ? Buffer.from(text) : text))) {
    for (let from = 0; from < bytes.length; from += LONGEST_NEEDLE_BYTES) {
      const piece = bytes.subarray(from, from + LONGEST_NEEDLE_BYTES);
      if (piece.length >= SHORTEST_SECRET_CHARS) pieces.set(piece.toString('latin1'), piece);
    }
  }
  return [...pieces.values()];
}

/** Returns the value with and without surrounding blanks, with LF, and with CR LF as a terminal prints it. */
function textsOf(value: string): string[] {
  const unix = value.split(/\r?\n/).join('\n');
  const texts = [value, unix, unix.trim()];
  texts.push(...texts.map((text) => text.replace(/\r?\n/g, '\r\n')));
  return [...new Set(texts)].filter((text) => !isShort(text));
}

/** Returns each line of a value with several lines, with and without surrounding blanks. */
function linesOf(value: string): string[] {
  const lines = value.split(/\r?\n/);
  if (lines.length === 1 || lines.length > MOST_SINGLE_LINES) return [];
  return [...new Set(lines.flatMap((line) => [line, line.trim()]))].filter((line) => !isShort(line));
}

export function isShort(text: string): boolean {
  return [...text].length < SHORTEST_SECRET_CHARS;
}
