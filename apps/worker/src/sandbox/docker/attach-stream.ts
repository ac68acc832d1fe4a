import { Duplex } from 'node:stream';

const HEADER_BYTES = 8;
const STDOUT = 1;

/**
 * Duplex stream of a container's stdin and stdout. The engine precedes each piece of output with a header (stream,
 * length); stderr is dropped. Backpressure reaches the container.
 */
export class AttachStream extends Duplex {
  readonly #socket: Duplex;
  #header = Buffer.alloc(0);
  #left = 0;
  #isStdout = false;

  constructor(socket: Duplex) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#demultiplex(chunk));
    socket.on('end', () => this.push(null));
    socket.on('close', () => this.destroy());
    socket.on('error', (error) => this.destroy(error));
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  #demultiplex(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left === 0) at += this.#readHeader(chunk.subarray(at));
      const piece = chunk.subarray(at, at + this.#left);
      at += piece.length;
      this.#left -= piece.length;
      if (this.#isStdout && piece.length > 0 && !this.push(piece)) this.#socket.pause();
    }
  }

  /** Reads the available part of a header and returns its number of bytes. */
  #readHeader(bytes: Buffer): number {
    const missing = bytes.subarray(0, HEADER_BYTES - this.#header.length);
    this.#header = Buffer.concat([this.#header, missing]);
    if (this.#header.length === HEADER_BYTES) {
      this.#isStdout = this.#header[0] === STDOUT;
      this.#left = this.#header.readUInt32BE(4);
      this.#header = Buffer.alloc(0);
    }
    return missing.length;
  }
}
