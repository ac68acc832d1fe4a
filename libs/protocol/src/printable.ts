/** Makes text safe for a terminal: shows control, direction and zero-width characters as escapes. */
export function toPrintable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u17b4\u17b5\u3164\uffa0]|\u034f|\p{Variation_Selector}/gu,
    toEscape,
  );
}

function toEscape(character: string): string {
  const hex = character.codePointAt(0)?.toString(16) ?? '';
  return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`;
}
