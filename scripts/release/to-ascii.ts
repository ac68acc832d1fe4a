/** Escapes all non-ASCII characters of a program, because they make V8 use twice the memory for the text. */
export function toAscii(code: string): string {
  if (/String\.raw`[^`]*[^\0-\x7f]/.test(code))
    throw new Error('A raw template of the bundle has a character that would be escaped.');
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
