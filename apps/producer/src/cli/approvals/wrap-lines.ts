/** A line of a screen, which may take several rows. */
export interface ScreenLine {
  text: string;
  /** Beginning of each row but the first; nothing when it is absent. */
  continued?: string;
}

/** Cuts lines into rows of at most `columns` columns. Nothing is left out. */
export function wrapLines(lines: readonly ScreenLine[], columns: number): string[] {
  return lines.flatMap(({ text, continued = '' }) => {
    const rows = [''];
    let used = 0;
    for (const character of text) {
      const width = widthOf(character);
      if (used + width > columns && used > continued.length) {
        rows.push(continued);
        used = continued.length;
      }
      rows[rows.length - 1] += character;
      used += width;
    }
    return rows;
  });
}

/** Returns as much of a text as fits, with `…` where it was cut. */
export function cutText(text: string, columns: number): string {
  const [first = '', ...more] = wrapLines([{ text }], Math.max(1, columns - 2));
  return more.length === 0 ? first : `${first}…`;
}

/**
 * Returns the columns that a character takes at most. Terminals do not agree on the width of most characters, so all
 * but those of ASCII count as wide. A row may be short, but is never too long.
 */
const widthOf = (character: string) => (character <= '\u007e' ? 1 : 2);
