// Dials keepers that listen on TCP, over an encrypted connection.
// TCP-1. No frame is sent or delivered before the handshake, which only a keeper with the sandbox's psk completes.
// TCP-2. Whatever the other end sends, it can at most end the connection.
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { abortable } from '@shellfleet/concurrency';
import { LinkInitiator, type LinkMessages } from '@shellfleet/keeper';
import { freeBytes } from '../../output/free-bytes.ts';
import type { KeeperLink } from '../../sandbox/sandbox.ts';
import type { Transport } from './transport.ts';

type TcpLink = Extract<KeeperLink, { type: 'tcp' }>;

/** Time for a connection and the reply to its first message. Both need milliseconds. */
const ANSWER_WITHIN_MS = 2_000;
/** Least time between two attempts. */
const AGAIN_MS = 50;

/** An attempt that failed. */
class DialFailure extends Error {
  /** Whether the network let no connection through. */
  readonly isUnreached: boolean;

  constructor(message: string, isUnreached: boolean) {
    super(message);
    this.isUnreached = isUnreached;
  }
}

type OnFailure = (failure: Pick<DialFailure, 'message' | 'isUnreached'>) => void;

/** Connects to one keeper, as often as asked. */
export class KeeperDialer {
  readonly #link: TcpLink;
  readonly #onFailure: OnFailure;
  #triedAt = Number.NEGATIVE_INFINITY;

  /** `onFailure` receives each attempt that failed. */
  constructor(link: TcpLink, onFailure: OnFailure) {
    this.#link = link;
    this.#onFailure = onFailure;
  }

  /**
   * Dials until there is a connection with a finished handshake. Rejects when the signal aborts, or when the sandbox
   * will never have an address.
   */
  async connect(signal: AbortSignal): Promise<TcpTransport> {
    for (;;) {
      const pause = this.#triedAt + AGAIN_MS - performance.now();
      if (pause > 0) await abortable(delay(pause), signal);
      const address = await abortable(this.#link.address(signal), signal);
      this.#triedAt = performance.now();
      try {
        return await dial(address, this.#link, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof DialFailure)) throw error;
        this.#onFailure(error);
      }
    }
  }
}

/** Makes one attempt. Rejects with a DialFailure, or as the signal. */
function dial(
  { host, port }: { host: string; port: number },
  keys: Pick<TcpLink, 'privateKey' | 'psk'>,
  signal: AbortSignal,
): Promise<TcpTransport> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const where = `${host}:${port}`;
    const socket = connect({ host, port, noDelay: true });
    let initiator: LinkInitiator | undefined;
    let problem = 'the connection was closed during the handshake';
    const end = (reason: string) => {
      problem = reason;
      socket.destroy();
    };
    const late = setTimeout(() => end(`no answer within ${ANSWER_WITHIN_MS} ms`), ANSWER_WITHIN_MS);
    const abort = () => socket.destroy();
    signal.addEventListener('abort', abort, { once: true });
    const settle = () => {
      clearTimeout(late);
      signal.removeEventListener('abort', abort);
    };
    const read = (bytes: Buffer) => {
      let done: ReturnType<LinkInitiator['push']>;
      try {
        done = initiator?.push(bytes);
      } catch {
        end('what answered has other keys, or is no keeper');
      }
      if (done === undefined) return;
      settle();
      socket.off('data', read);
      socket.off('close', fail);
      socket.pause();
      resolve(new TcpTransport(socket, done.messages, done.rest));
    };
    const fail = () => {
      settle();
      reject(new DialFailure(`${where}: ${problem}`, initiator === undefined));
    };
    socket.once('connect', () => {
      initiator = new LinkInitiator(keys);
      socket.write(initiator.opening);
    });
    socket.on('data', read);
    socket.on('error', (error) => end(error.message));
    socket.once('close', fail);
  });
}

class TcpTransport implements Transport {
  readonly #socket: Socket;
  readonly #messages: LinkMessages;
  /** Bytes that came with the reply. */
  #early: Uint8Array;

  constructor(socket: Socket, messages: LinkMessages, early: Uint8Array) {
    this.#socket = socket;
    this.#messages = messages;
    this.#early = early;
  }

  open(events: { data(bytes: Uint8Array): void; closed(): void }): void {
    const receive = (bytes: Uint8Array) => {
      for (const piece of this.#decrypt(bytes)) events.data(piece);
    };
    const early = this.#early;
    this.#early = new Uint8Array(0);
    receive(early);
    if (this.#socket.destroyed) {
      events.closed();
      return;
    }
    this.#socket.on('data', (bytes) => {
      receive(bytes);
      freeBytes(bytes); // the messages have their own memory
    });
    this.#socket.once('close', events.closed);
    this.#socket.resume();
  }

  #decrypt(bytes: Uint8Array): Buffer[] {
    try {
      return this.#messages.push(bytes);
    } catch {
      // A message was changed, repeated or left out on its way, or is not the keeper's (TCP-2).
      this.close();
      return [];
    }
  }

  write(bytes: Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(this.#messages.encode(bytes));
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
