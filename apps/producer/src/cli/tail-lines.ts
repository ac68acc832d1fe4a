const NEWLINE = 10;

/**
 * Keeps the last lines of output pieces. A line ends with its newline, and text after the last newline is a line too.
 */
export class TailLines<T extends { data: Uint8Array }> {
  readonly #lines: number;
  /** Returns the end of a piece from the byte `from` on. */
  readonly #cut: (piece: T, from: number) => T;
  #pieces: { piece: T; newlines: number }[] = [];
  #newlines = 0;

  constructor(lines: number, cut: (piece: T, from: number) => T) {
    this.#lines = lines;
    this.#cut = cut;
  }

  push(piece: T): void {
    const newlines = countNewlines(piece.data);
    this.#pieces.push({ piece, newlines });
    this.#newlines += newlines;
    // The newline before the first kept line may be the last byte of a dropped piece.
    for (let first = this.#pieces[0]; first !== undefined; first = this.#pieces[0]) {
      if (this.#newlines - first.newlines <= this.#lines) return;
      this.#pieces.shift();
      this.#newlines -= first.newlines;
    }
  }

  /** Returns the pieces of the last lines. */
  end(): T[] {
    const last = this.#pieces.findLast(({ piece }) => piece.data.byteLength > 0)?.piece.data.at(-1);
    // Number of newlines before the first kept line.
    let skipped = this.#newlines - this.#lines + (last === undefined || last === NEWLINE ? 0 : 1);
    return this.#pieces.flatMap(({ piece, newlines }) => {
      if (skipped <= 0) return [piece];
      const skippedHere = Math.min(skipped, newlines);
      skipped -= skippedHere;
      if (skipped > 0 || skippedHere < 1) return [];
      const from = afterNewline(piece.data, skippedHere);
      return from === piece.data.byteLength ? [] : [this.#cut(piece, from)];
    });
  }
}

function countNewlines(data: Uint8Array): number {
  let count = 0;
  for (let at = data.indexOf(NEWLINE); at >= 0; at = data.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}

function afterNewline(data: Uint8Array, number: number): number {
  let at = -1;
  for (let count = 0; count < number; count += 1) at = data.indexOf(NEWLINE, at + 1);
  return at + 1;
}
