// Feeds the open stdin of one entry as a worker does: never more than one window beyond the bytes that the pipe has
// taken.
import { INPUT_WINDOW_BYTES } from '@shellfleet/keeper';
import type { EntryUlid } from '@shellfleet/worker/shell';
import type { ShellClient } from './shell-client.ts';

const FRAME_BYTES = 100_000; // no divisor of the window

export class ShellFeed {
  /** Offset in the last INPUT_TAKEN message of the keeper. */
  taken = 0;
  readerClosed = false;
  readonly #entryId: EntryUlid;
  readonly #bytes: Uint8Array;
  #client: ShellClient;
  #sent = 0;
  #endSent = false;

  constructor(client: ShellClient, entryId: EntryUlid, bytes: Uint8Array) {
    this.#entryId = entryId;
    this.#bytes = bytes;
    this.#client = client;
    this.follow(client);
  }

  /** Uses a new connection. Call rewind() and send() then. */
  follow(client: ShellClient): void {
    this.#client = client;
    client.onInputTaken = (entryId, offset, readerClosed) => {
      if (entryId !== this.#entryId) return;
      this.taken = offset;
      this.readerClosed = readerClosed;
      this.send();
    };
  }

  /** Sends again from the offset that the keeper reported last. */
  rewind(): void {
    this.#sent = this.taken;
    this.#endSent = false;
  }

  /** To be called after the entry has begun. */
  send(): void {
    const { shell } = this.#client;
    while (this.#sent < this.#bytes.length && this.#sent < this.taken + INPUT_WINDOW_BYTES) {
      const to = Math.min(this.#sent + FRAME_BYTES, this.taken + INPUT_WINDOW_BYTES, this.#bytes.length);
      shell.input(this.#entryId, this.#sent, this.#bytes.subarray(this.#sent, to), false);
      this.#sent = to;
    }
    if (this.#sent < this.#bytes.length || this.#endSent) return;
    this.#endSent = true;
    shell.input(this.#entryId, this.#sent, new Uint8Array(0), true);
  }
}
