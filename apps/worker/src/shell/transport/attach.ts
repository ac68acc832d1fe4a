// Connects to the keeper by the engine's attach, where no host directory can be mounted. Closing does not end the
// container.
import type { Duplex } from 'node:stream';
import type { Transport } from './transport.ts';

/** Wraps a stream to the keeper's stdin and from its stdout only. */
export function attachTransport(stream: Duplex, sync: Uint8Array): Transport {
  return new AttachTransport(stream, sync);
}

class AttachTransport implements Transport {
  readonly sync: Uint8Array;
  readonly #stream: Duplex;

  constructor(stream: Duplex, sync: Uint8Array) {
    this.sync = sync;
    this.#stream = stream;
    stream.on('error', () => stream.destroy());
  }

  open(events: { data(bytes: Uint8Array): void; closed(): void }): void {
    let isOpen = true;
    const close = () => {
      if (isOpen) events.closed();
      isOpen = false;
    };
    this.#stream.on('data', (bytes: Buffer) => {
      if (isOpen) events.data(bytes);
    });
    this.#stream.once('end', close);
    this.#stream.once('close', close);
    if (this.#stream.destroyed) close();
  }

  write(bytes: Uint8Array): void {
    if (this.#stream.writable) this.#stream.write(bytes);
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  close(): void {
    this.#stream.destroy();
  }
}
