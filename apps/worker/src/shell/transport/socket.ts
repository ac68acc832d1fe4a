// The worker's end of the unix socket to which the keeper of one session dials out.
//
// So1. Nobody but the holder of the token gets past the hello. User code in the container can connect too (the folder is mounted
//      there, read-only), so connections without a hello are few and short-lived.
// So2. The socket is writable for all, because the container's user is any uid; what keeps other sessions and users of the host
//      out is a folder above it, which is the worker's alone (0700).
import { timingSafeEqual } from 'node:crypto';
import { chmod, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { decodeHello, FrameDecoder, FrameType, MAX_FROM_KEEPER } from '@shellfleet/keeper';
import type { Transport } from './transport.ts';

const MAX_SOCKET_PATH = 107;
const MAX_WITHOUT_HELLO = 4;
const HELLO_WITHIN_MS = 1_000;

export interface KeeperListener {
  /** The next connection that proved itself; a keeper that lost its connection dials again at once. */
  accept(options?: { signal?: AbortSignal }): Promise<Transport>;
  /** Nobody gets in any more. Connections that were handed out live on. */
  close(): void;
}

/** Listens at the path, in place of a worker that is gone. */
export async function listenForKeeper(options: { path: string; token: string }): Promise<KeeperListener> {
  const { path, token } = options;
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH) {
    throw new RangeError(
      `The socket path ${path} is longer than ${MAX_SOCKET_PATH} bytes; choose a shorter state folder.`,
    );
  }
  await rm(path, { force: true });
  const door = new Door(Buffer.from(token));
  await door.listen(path);
  await chmod(path, 0o666);
  return door;
}

class Door implements KeeperListener {
  readonly #token: Buffer;
  readonly #server: Server;
  readonly #withoutHello = new Set<Socket>();
  #arrived: SocketTransport | undefined;
  #waiting: ((transport: SocketTransport) => void) | undefined;

  constructor(token: Buffer) {
    this.#token = token;
    this.#server = createServer((socket) => this.#receive(socket));
  }

  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(path, () => resolve());
    });
  }

  accept({ signal }: { signal?: AbortSignal } = {}): Promise<Transport> {
    signal?.throwIfAborted();
    const arrived = this.#arrived;
    this.#arrived = undefined;
    if (arrived?.isOpen) return Promise.resolve(arrived);
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
    // The oldest goes, not the newest: a keeper says its hello at once, so no crowd of silent ones keeps it out.
    const [oldest] = this.#withoutHello;
    if (oldest && this.#withoutHello.size >= MAX_WITHOUT_HELLO) {
      this.#withoutHello.delete(oldest);
      oldest.destroy();
    }
    this.#withoutHello.add(socket);
    const late = setTimeout(() => socket.destroy(), HELLO_WITHIN_MS);
    const decoder = new FrameDecoder({ maxPayload: MAX_FROM_KEEPER });
    const heard: Uint8Array[] = [];
    const listen = (bytes: Buffer) => {
      heard.push(bytes);
      if (!this.#provesItself(decoder, bytes, socket)) return;
      forget();
      socket.off('data', listen);
      socket.pause();
      this.#hand(new SocketTransport(socket, heard));
    };
    const forget = () => {
      clearTimeout(late);
      this.#withoutHello.delete(socket);
    };
    socket.on('data', listen);
    socket.once('close', forget);
  }

  /** The first frame must be a hello with our token; whoever says anything else is gone. */
  #provesItself(decoder: FrameDecoder, bytes: Buffer, socket: Socket): boolean {
    try {
      const first = decoder.push(bytes)[0];
      if (!first) return false;
      if (first.type === FrameType.hello && isToken(decodeHello(first.payload).token, this.#token)) return true;
    } catch {
      // Not our protocol.
    }
    socket.destroy();
    return false;
  }

  #hand(transport: SocketTransport): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) {
      waiting(transport);
      return;
    }
    this.#arrived?.close(); // the keeper has one connection: an earlier one is dead
    this.#arrived = transport;
  }
}

/** The field is zero-padded. */
export function isToken(field: Uint8Array, token: Uint8Array): boolean {
  const expected = new Uint8Array(field.length);
  if (token.length > field.length) return false;
  expected.set(token);
  return timingSafeEqual(field, expected);
}

class SocketTransport implements Transport {
  readonly #socket: Socket;
  readonly #heard: Uint8Array[];

  constructor(socket: Socket, heard: Uint8Array[]) {
    this.#socket = socket;
    this.#heard = heard;
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  open(events: { data(bytes: Uint8Array): void; closed(): void }): void {
    for (const bytes of this.#heard.splice(0)) events.data(bytes);
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
