/** A line of a screen, which may take several rows. */
export interface ScreenLine {
  text: string;
  /** Prefix of each row but the first. */
  continued?: string;
}

/** Cuts lines into rows of at most `columns` columns. */
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

/** Cuts a text to `columns`, with `…` at the cut. */
export function cutText(text: string, columns: number): string {
  const [first = '', ...more] = wrapLines([{ text }], Math.max(1, columns - 2));
  return more.length === 0 ? first : `${first}…`;
}

/** Returns the columns that a character takes at most. Terminals differ, so all but ASCII characters count as wide. */
const widthOf = (character: string) => (character <= '\u007e' ? 1 : 2);
