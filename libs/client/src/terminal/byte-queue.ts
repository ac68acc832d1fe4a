/** Beyond this the writer is asked to wait. */
const MOST_BYTES = 262_144;

/** Pieces on their way from one writer to one reader. */
export class ByteQueue implements AsyncIterable<Uint8Array> {
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #ended = false;
  #discards = false;
  #changed = Promise.withResolvers<void>();

  push(piece: Uint8Array): void {
    if (this.#discards) return;
    this.#pieces.push(piece);
    this.#bytes += piece.byteLength;
    this.#change();
  }

  /** What is there can still be read. */
  end(): void {
    this.#ended = true;
    this.#change();
  }

  /** Nobody reads any more. */
  discard(): void {
    this.#discards = true;
    this.#change();
  }

  async hasRoom(): Promise<void> {
    while (this.#bytes > MOST_BYTES && !this.#ended && !this.#discards) await this.#changed.promise;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        this.#bytes -= piece.byteLength;
        this.#change();
        yield piece;
      } else if (this.#ended) return;
      else await this.#changed.promise;
    }
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
