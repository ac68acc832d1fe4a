import { encodingsOf } from './encodings.ts';

/** A shorter secret would be found by chance all over the output. */
export const SHORTEST_SECRET_CHARS = 6;
/** A longer text is looked for in pieces: none may be longer than what a redactor holds. */
const LONGEST_NEEDLE_BYTES = 16 * 1024;

/** What to look for so that `value` is found however it is written; undefined if it is too short. */
export function needlesOf(value: string): Buffer[] | undefined {
  if (isShort(value)) return undefined;
  const needles = new Map<string, Buffer>();
  for (const text of textsOf(value)) {
    for (const encoded of encodingsOf(text).map((encoding) => Buffer.from(encoding))) {
      for (let from = 0; from < encoded.length; from += LONGEST_NEEDLE_BYTES) {
        const needle = encoded.subarray(from, from + LONGEST_NEEDLE_BYTES);
        if (needle.length >= SHORTEST_SECRET_CHARS) needles.set(needle.toString('latin1'), needle);
      }
    }
  }
  return [...needles.values()];
}

/** The value; without the newline at its end; with the newlines of a terminal; each line, with and without its blanks. */
function textsOf(value: string): string[] {
  const lines = value.split(/\r?\n/);
  const unix = lines.join('\n');
  const texts = [value, unix, unix.trim(), unix.replaceAll('\n', '\r\n'), unix.trim().replaceAll('\n', '\r\n')];
  if (lines.length > 1) texts.push(...lines.flatMap((line) => [line, line.trim()]));
  return [...new Set(texts)].filter((text) => !isShort(text));
}

function isShort(text: string): boolean {
  return [...text].length < SHORTEST_SECRET_CHARS;
}
