const NOTHING = Buffer.alloc(0);
/** Number of bytes up to which a loop copies faster than a call. */
const FEW_BYTES = 32;

/** The output of one push, in one buffer. */
export class ReleasedBytes {
  #bytes: Buffer = NOTHING;
  #length = 0;

  /** Adds the bytes [from, to). `expected` is the approximate number of bytes that will follow. */
  add(bytes: Buffer, from: number, to: number, expected: number): void {
    const length = to - from;
    if (this.#length + length > this.#bytes.length) this.#grow(length + expected);
    if (length > FEW_BYTES) bytes.copy(this.#bytes, this.#length, from, to);
    else for (let index = 0; index < length; index += 1) this.#bytes[this.#length + index] = bytes[from + index]!;
    this.#length += length;
  }

  /** Returns the bytes that were added since the last call. */
  take(): Buffer {
    if (this.#length === 0) return NOTHING;
    const { length } = this.#bytes;
    const taken = this.#bytes.subarray(0, this.#length);
    // If only a few bytes were used, they are copied, so that they do not keep the large buffer in memory.
    const released = 2 * this.#length < length ? Buffer.from(taken) : taken;
    this.#bytes = NOTHING;
    this.#length = 0;
    return released;
  }

  #grow(missing: number): void {
    const grown = Buffer.allocUnsafe(Math.max(this.#length + missing, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
