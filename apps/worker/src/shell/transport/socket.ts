// The worker's end of the unix socket to which the keeper of one session connects.
// SOCKET-1. A connection is accepted only after a hello with the token. User code in the container can connect too (the
//           directory is mounted there, read-only), so connections without a hello are limited in number and time.
// SOCKET-2. Every user may write to the socket, because the container's user has any uid. A directory above it that
//           only the worker may enter (0700) keeps out other sessions and users of the host.
import { timingSafeEqual } from 'node:crypto';
import { chmod, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { decodeHello, FrameDecoder, FrameType, MAX_FROM_KEEPER } from '@shellfleet/keeper';
import type { Transport } from './transport.ts';

const MAX_SOCKET_PATH = 107;
const MAX_WITHOUT_HELLO = 4;
const HELLO_WITHIN_MS = 1_000;

export interface KeeperListener {
  /** Returns the next authenticated connection. A keeper that lost its connection connects again at once. */
  accept(options?: { signal?: AbortSignal }): Promise<SocketTransport>;
  /** Stops accepting connections. Accepted ones stay open. */
  close(): void;
}

/** Listens at the path, and replaces a socket that an earlier worker left there. */
export async function listenForKeeper(options: { path: string; token: string }): Promise<KeeperListener> {
  const { path, token } = options;
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH) {
    throw new RangeError(
      `The socket path ${path} is longer than ${MAX_SOCKET_PATH} bytes; choose a shorter state directory.`,
    );
  }
  await rm(path, { force: true });
  // A Buffer would keep 64 KiB of Node's pool as long as the session exists.
  const listener = new UnixListener(new TextEncoder().encode(token));
  await listener.listen(path);
  await chmod(path, 0o666);
  return listener;
}

class UnixListener implements KeeperListener {
  readonly #token: Uint8Array;
  readonly #server: Server;
  readonly #withoutHello = new Set<Socket>();
  #arrived: SocketTransport | undefined;
  #waiting: ((transport: SocketTransport) => void) | undefined;

  constructor(token: Uint8Array) {
    this.#token = token;
    this.#server = createServer((socket) => this.#receive(socket));
  }

  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(path, () => resolve());
    });
  }

  accept({ signal }: { signal?: AbortSignal } = {}): Promise<SocketTransport> {
    signal?.throwIfAborted();
    const arrived = this.#arrived;
    this.#arrived = undefined;
    if (arrived?.isOpen || arrived?.isLast) return Promise.resolve(arrived);
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiting = undefined;
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', abort, { once: true });
      this.#waiting = (transport) => {
        signal?.removeEventListener('abort', abort);
        resolve(transport);
      };
    });
  }

  close(): void {
    for (const socket of this.#withoutHello) socket.destroy();
    this.#arrived?.close();
    this.#server.close();
  }

  #receive(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    // The oldest connection is closed, since a keeper sends its hello at once. Idle connections cannot keep it out.
    const [oldest] = this.#withoutHello;
    if (oldest && this.#withoutHello.size >= MAX_WITHOUT_HELLO) {
      this.#withoutHello.delete(oldest);
      oldest.destroy();
    }
    this.#withoutHello.add(socket);
    const late = setTimeout(() => socket.destroy(), HELLO_WITHIN_MS);
    const decoder = new FrameDecoder({ maxPayload: MAX_FROM_KEEPER });
    const early: Uint8Array[] = [];
    const listen = (bytes: Buffer) => {
      early.push(bytes);
      const frames = this.#framesOfKeeper(decoder, bytes, socket);
      if (frames === 0) return;
      forget();
      socket.off('data', listen);
      socket.pause();
      this.#hand(new SocketTransport(socket, early, frames > 1));
    };
    const forget = () => {
      clearTimeout(late);
      this.#withoutHello.delete(socket);
    };
    socket.on('data', listen);
    socket.once('close', forget);
  }

  /** Returns the number of frames so far. Closes the connection unless the first is a HELLO with the token. */
  #framesOfKeeper(decoder: FrameDecoder, bytes: Buffer, socket: Socket): number {
    try {
      const frames = decoder.push(bytes);
      const [first] = frames;
      if (!first) return 0;
      if (first.type === FrameType.hello && isToken(decodeHello(first.payload).token, this.#token))
        return frames.length;
    } catch {
      // The bytes do not follow the keeper's protocol.
    }
    socket.destroy();
    return 0;
  }

  #hand(transport: SocketTransport): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) {
      waiting(transport);
      return;
    }
    this.#arrived?.close(); // a keeper has one connection: the earlier one is broken
    this.#arrived = transport;
  }
}

/** Compares a zero-padded field with the token. */
export function isToken(field: Uint8Array, token: Uint8Array): boolean {
  const expected = new Uint8Array(field.length);
  if (token.length > field.length) return false;
  expected.set(token);
  return timingSafeEqual(field, expected);
}

class SocketTransport implements Transport {
  readonly #socket: Socket;
  readonly #early: Uint8Array[];
  /** Whether the keeper has ended after its HELLO because it cannot start. Its last messages can still be read. */
  readonly isLast: boolean;

  constructor(socket: Socket, early: Uint8Array[], isLast: boolean) {
    this.#socket = socket;
    this.#early = early;
    this.isLast = isLast;
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  open(events: { data(bytes: Uint8Array): void; closed(): void }): void {
    for (const bytes of this.#early.splice(0)) events.data(bytes);
    if (this.#socket.destroyed) {
      events.closed();
      return;
    }
    this.#socket.on('data', events.data);
    this.#socket.once('close', events.closed);
    this.#socket.resume();
  }

  write(bytes: Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(bytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.destroy();
  }
}
