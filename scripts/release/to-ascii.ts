/** Escapes all other characters of a program, because V8 keeps a text that has any in twice the memory. */
export function toAscii(code: string): string {
  if (/String\.raw`[^`]*[^\0-\x7f]/.test(code))
    throw new Error('A raw template of the bundle has a character that would be escaped.');
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
