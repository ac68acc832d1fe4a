/** Numbers in 8 bytes each, whatever their count. */
export class NumberColumn {
  #values = new Float64Array(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const grown = new Float64Array(2 * this.#length);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#length++] = value;
  }

  at(index: number): number {
    return this.#values[index] ?? Number.NaN;
  }

  /** Returns the numbers in ascending order. */
  sorted(): Float64Array {
    return this.#values.slice(0, this.#length).sort();
  }
}
