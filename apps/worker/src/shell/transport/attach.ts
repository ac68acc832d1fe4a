// The keeper's stdin and stdout over `docker attach`, for where no host folder can be mounted. The stream comes from the docker
// folder, hijacked: closing it leaves the container alone.
import type { Duplex } from 'node:stream';
import type { Transport } from './transport.ts';

const HEADER_BYTES = 8;
const STDOUT = 1;
const KEPT_WORDS = 4096;

/** `words` are what the keeper said on stderr: why it could not start. */
export function attachTransport(stream: Duplex, sync: Uint8Array): Transport & { readonly words: string } {
  return new AttachTransport(stream, sync);
}

class AttachTransport implements Transport {
  readonly sync: Uint8Array;
  readonly #stream: Duplex;
  words = '';

  constructor(stream: Duplex, sync: Uint8Array) {
    this.sync = sync;
    this.#stream = stream;
    stream.on('error', () => stream.destroy());
  }

  open(events: { data(bytes: Uint8Array): void; closed(): void }): void {
    const demux = createDemux((channel, bytes) => {
      if (channel === STDOUT) events.data(bytes);
      else this.words = (this.words + Buffer.from(bytes).toString()).slice(-KEPT_WORDS);
    });
    let open = true;
    const close = () => {
      if (open) events.closed();
      open = false;
    };
    this.#stream.on('data', (bytes: Buffer) => {
      if (open) demux(bytes);
    });
    this.#stream.once('end', close);
    this.#stream.once('close', close);
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

/** Docker's framing of an attached stream without a TTY: channel, three zero bytes, length (big-endian), bytes. */
export function createDemux(deliver: (channel: number, bytes: Uint8Array) => void): (bytes: Uint8Array) => void {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerLength = 0;
  let left = 0;
  return (bytes) => {
    let at = 0;
    while (at < bytes.length) {
      if (left > 0) {
        const piece = bytes.subarray(at, at + left);
        deliver(header[0]!, piece);
        left -= piece.length;
        at += piece.length;
        continue;
      }
      const piece = bytes.subarray(at, at + HEADER_BYTES - headerLength);
      header.set(piece, headerLength);
      headerLength += piece.length;
      at += piece.length;
      if (headerLength < HEADER_BYTES) return;
      headerLength = 0;
      left = header.readUInt32BE(4);
    }
  };
}
