import { cutText } from '../wrap-lines.ts';

export interface Column {
  title: string;
  /** Printable text of each row. */
  cells: readonly string[];
  /** Whether the column has numbers, which end below each other. */
  isNumber?: boolean;
  /** Order in which columns are left out of a narrow table, the highest number first. Columns without it stay. */
  leftOut?: number;
}

const GAP = '  ';
/** Columns of the terminal that the last column of a table keeps if it has as much text. */
const LAST_WIDTH = 24;

/** Draws a table, its titles first, in at most `width` columns: leaves out columns, then cuts the ends of the rows. */
export function fitTable(columns: readonly Column[], width: number): string[] {
  const shown = [...columns];
  while (neededWidth(shown) > width) {
    const least = shown.reduce<Column | undefined>(
      (found, column) => ((column.leftOut ?? 0) > (found?.leftOut ?? 0) ? column : found),
      undefined,
    );
    if (least === undefined) break;
    shown.splice(shown.indexOf(least), 1);
  }
  const widths = shown.map(widthOf);
  const [first] = shown;
  return Array.from({ length: 1 + (first?.cells.length ?? 0) }, (_, row) => {
    const cells = shown.map(({ title, cells, isNumber }, at) => {
      const text = row === 0 ? title : (cells[row - 1] ?? '');
      return isNumber ? text.padStart(widths[at] ?? 0) : text.padEnd(widths[at] ?? 0);
    });
    return cutRow(cells.join(GAP).trimEnd(), width);
  });
}

/** Cuts a text that is wider than `width`, with `…` at the cut if there is room for it. */
export function cutRow(text: string, width: number): string {
  if (text.length <= width) return text;
  return width < 3 ? text.slice(0, width) : cutText(text, width);
}

function neededWidth(columns: readonly Column[]): number {
  const widths = columns.map(widthOf);
  const last = widths.pop() ?? 0;
  return widths.reduce((sum, width) => sum + width + GAP.length, Math.min(last, LAST_WIDTH));
}

const widthOf = ({ title, cells }: Column) => cells.reduce((most, { length }) => Math.max(most, length), title.length);
