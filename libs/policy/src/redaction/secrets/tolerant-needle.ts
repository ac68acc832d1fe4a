import type { Anchor } from '../anchor-scan.ts';
import type { ByteSet } from '../bytes.ts';
import type { Findings, Rule, ScanWindow } from '../source.ts';

/** The ways in which one byte of a value may be written. */
interface Written {
  /** Forms of the byte. A longer form comes before forms that are its own beginning. */
  forms: readonly Buffer[];
  /** True if the byte itself excludes the other forms at its position. */
  isItself: boolean;
}

/** Forms of each byte. The first byte of a value may have other forms than the later ones. */
interface Forms {
  first: readonly Written[];
  later: readonly Written[];
  /** Set of the first bytes of all forms except the byte itself. */
  marks: ByteSet;
}

/** Percent-encoding. Paths, queries, forms and names encode different sets of bytes; any mixture is found. */
export const percentForms = byTable((byte) => {
  const character = Buffer.of(byte);
  const digits = byte.toString(16).padStart(2, '0');
  const encoded = [
    digits,
    digits.toUpperCase(),
    digits[0]!.toUpperCase() + digits[1],
    digits[0] + digits[1]!.toUpperCase(),
  ];
  const forms = [...encoded.map((text) => Buffer.from(`%${text}`)), character];
  return byte === 0x20 ? [...forms, Buffer.from('+')] : forms;
});

/** base64 and hex, in lines of any length. */
export const wrappedForms = byTable((byte, isFirst) =>
  isFirst ? [Buffer.of(byte)] : [Buffer.of(byte), Buffer.of(0x0a, byte), Buffer.of(0x0d, 0x0a, byte)],
);

/**
 * Separators of hex bytes as certificates, `od` and `xxd -i` print them. A longer separator comes before its own
 * beginnings.
 */
const HEX_SEPARATORS = [':', '-', ' 0x', ' ', ', 0x', ',0x', ',\n  0x', '\n  0x', '\n ', '\n', '\r\n '];

/**
 * Length of an anchor of separated hex: two bytes. A number of two digits with a blank or colon is common in text, but
 * two such numbers in a row are not.
 */
export const SEPARATED_HEX_ANCHOR_BYTES = 5;

/** Hex with separators between the bytes, in either case. */
export const separatedHexForms = byTable((byte, isFirst) => {
  const digits = byte.toString(16).padStart(2, '0');
  const cases = [...new Set([digits, digits.toUpperCase()])];
  const before = isFirst ? [''] : HEX_SEPARATORS;
  return before.flatMap((separator) => cases.map((text) => Buffer.from(separator + text)));
});

const LETTER_ESCAPES: Record<number, string> = {
  7: 'a',
  8: 'b',
  9: 't',
  10: 'n',
  11: 'v',
  12: 'f',
  13: 'r',
  27: 'eE',
};

/**
 * Backslash escapes of shells, JSON, C, Go, Perl and Python. bash in the locale C escapes all non-ASCII bytes in octal.
 */
export const escapedForms = byTable((byte) => {
  const character = Buffer.of(byte);
  if (isAlphanumeric(byte)) return [character];
  const hex = byte.toString(16).padStart(2, '0');
  const numbers = [`x${hex}`, `x${hex.toUpperCase()}`, byte.toString(8).padStart(3, '0')];
  const units = byte < 0x80 ? [`u00${hex}`, `u00${hex.toUpperCase()}`] : [];
  const escapes = [...numbers, ...units, ...(LETTER_ESCAPES[byte] ?? '')].map((text) => Buffer.from(`\\${text}`));
  const itself = byte >= 0x20 && byte < 0x7f ? [Buffer.of(0x5c, byte)] : [];
  return [...escapes, ...itself, character];
});

function isAlphanumeric(byte: number): boolean {
  return /[A-Za-z0-9]/.test(String.fromCharCode(byte));
}

function byTable(formsOf: (byte: number, isFirst: boolean) => readonly Buffer[]): Forms {
  const [first, later] = [true, false].map((isFirst) =>
    Array.from({ length: 256 }, (_, byte) => {
      const forms = formsOf(byte, isFirst);
      const there = forms.filter((form) => form[0] === byte);
      return { forms, isItself: there.length === 1 && there[0]!.length === 1 };
    }),
  );
  const marks = new Uint8Array(256);
  for (const written of [first!, later!])
    for (const [byte, { forms }] of written.entries()) for (const [mark] of forms) if (mark !== byte) marks[mark!] = 1;
  return { first: first!, later: later!, marks };
}

/**
 * Finds `value` with each byte written in any of its forms. `anchorBytes` is more than 3 if texts often contain the
 * first three bytes.
 */
export function tolerantAnchors(rule: Rule, value: Buffer, forms: Forms, anchorBytes = 3): Anchor[] {
  const check = (window: ScanWindow, at: number, findings: Findings): void => {
    const end = matchEnd(value, forms, window, at);
    if (end === 'open') findings.open(rule, at);
    else if (end !== undefined) findings.found(rule, at, at, end);
  };
  return beginningsOf(value, forms, anchorBytes).map((bytes) => ({ rule, bytes, check }));
}

function matchEnd(
  value: Buffer,
  { first, later, marks }: Forms,
  window: ScanWindow,
  from: number,
): number | 'open' | undefined {
  const { bytes, end } = window;
  let at = from;
  for (let index = 0; index < value.length; index += 1) {
    const byte = value[index]!;
    const { forms, isItself } = (index === 0 ? first : later)[byte]!;
    if (isItself && at < end) {
      if (bytes[at] === byte) {
        at += 1;
        continue;
      }
      if (marks[bytes[at]!] === 0) return undefined;
    }
    const length = formLength(forms, window, at);
    if (length === 0) return undefined;
    if (length === 'open') return 'open';
    at += length;
  }
  return at;
}

/**
 * Returns the length of the first of `forms` that the text has at `at`. Returns 0 if the text has none of them there.
 */
function formLength(forms: readonly Buffer[], { bytes, end, complete }: ScanWindow, at: number): number | 'open' {
  for (const form of forms) {
    const shown = Math.min(form.length, end - at);
    let same = 0;
    while (same < shown && bytes[at + same] === form[same]) same += 1;
    if (same === form.length) return same;
    if (same === shown && shown < form.length && !complete) return 'open';
  }
  return 0;
}

/** Returns all ways to write the beginning of the value, up to `most` bytes. */
function beginningsOf(value: Buffer, forms: Forms, most: number): Buffer[] {
  let beginnings = forms.first[value[0]!]!.forms;
  for (const byte of value.subarray(1, 3)) {
    beginnings = beginnings.flatMap((text) =>
      text.length >= most ? [text] : forms.later[byte]!.forms.map((form) => Buffer.concat([text, form])),
    );
  }
  const unique = new Map(beginnings.map((text) => [text.toString('latin1', 0, most), text.subarray(0, most)]));
  return [...unique.values()];
}
