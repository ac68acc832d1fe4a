import { Notifier } from '@shellfleet/concurrency';

/** Bytes in the queue above which hasRoom() waits. */
const MOST_BYTES = 262_144;

export class ByteQueue implements AsyncIterable<Uint8Array> {
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #ended = false;
  #discards = false;
  readonly #changed = new Notifier();

  push(piece: Uint8Array): void {
    if (this.#discards) return;
    this.#pieces.push(piece);
    this.#bytes += piece.byteLength;
    this.#changed.notify();
  }

  /** Ends the queue. The bytes in it can still be read. */
  end(): void {
    this.#ended = true;
    this.#changed.notify();
  }

  /** Drops all bytes that are added later, because nothing reads them any more. */
  discard(): void {
    this.#discards = true;
    this.#changed.notify();
  }

  /** Resolves when there is room for more, or the queue has ended. */
  async hasRoom(): Promise<void> {
    while (this.#bytes > MOST_BYTES && !this.#ended && !this.#discards) await this.#changed.wait();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        this.#bytes -= piece.byteLength;
        this.#changed.notify();
        yield piece;
      } else if (this.#ended) return;
      else await this.#changed.wait();
    }
  }
}
