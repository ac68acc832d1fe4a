import type { ServerResponse } from 'node:http';
import type { Access, Principal, Validity } from '@shellfleet/access';
import { stopping, unauthenticated } from '../problems/http-problem.ts';

const KEEP_ALIVE_MS = 15_000;

/** A wait or a stream that goes on until its client leaves, its key stops working, or the server stops. */
export interface Work extends Disposable {
  /** Aborted with the problem that ends the work, or with CLIENT_LEFT if nobody reads the reply any more. */
  readonly signal: AbortSignal;
  /** Ends the work after this time. */
  endAfter(ms: number): void;
  /** Calls a function every 15 s, as long as the work goes on. */
  onKeepAlive(write: () => void): void;
}

/** The part of a response, or of the connection of a WebSocket, that work needs. */
interface Connection {
  readonly closed: boolean;
  on(event: 'close', listener: () => void): unknown;
  off(event: 'close', listener: () => void): unknown;
}

/** Calls a function once when a response is closed, at once if its client has left already. */
export function onceClosed(response: Pick<ServerResponse, 'closed' | 'once'>, call: () => void): void {
  if (response.closed) call();
  else response.once('close', call);
}

export interface WorkOptions {
  /** Whether it goes on while the server stops: a client could not resume it elsewhere. Default: it ends. */
  goesOn?: boolean;
}

/** All waits and streams of a server. They share one timer. */
export class OpenWork {
  readonly #access: Access;
  readonly #open = new Set<OneWork>();
  #timer: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(access: Access) {
    this.#access = access;
  }

  get size(): number {
    return this.#open.size;
  }

  get isStopping(): boolean {
    return this.#stopping;
  }

  begin(principal: Principal, response: Connection, { goesOn = false }: WorkOptions = {}): Work {
    const work = new OneWork(response, this.#access.validity(principal), goesOn, () => this.#open.delete(work));
    this.#open.add(work);
    this.#timer ??= setInterval(() => this.#keepAlive(), KEEP_ALIVE_MS).unref();
    if (this.#stopping && !goesOn) work.stop(stopping());
    return work;
  }

  /** Ends all work, and all that begins later. */
  stop(): void {
    this.#stopping = true;
    clearInterval(this.#timer);
    for (const work of this.#open) if (!work.goesOn) work.stop(stopping());
  }

  #keepAlive(): void {
    for (const work of this.#open) work.keepAlive();
  }
}

class OneWork implements Work {
  readonly #controller = new AbortController();
  readonly #response: Connection;
  readonly #validity: Validity;
  readonly #onEnd: () => void;
  readonly goesOn: boolean;
  #keepAlive: () => void = () => {};
  #timeout: NodeJS.Timeout | undefined;

  constructor(response: Connection, validity: Validity, goesOn: boolean, onEnd: () => void) {
    this.goesOn = goesOn;
    this.#response = response;
    this.#validity = validity;
    this.#onEnd = onEnd;
    response.on('close', this.#closed);
    validity.signal.addEventListener('abort', this.#revoked);
    if (response.closed) this.#left();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  endAfter(ms: number): void {
    this.#timeout = setTimeout(() => this.stop(TIME_IS_UP), ms).unref();
  }

  onKeepAlive(write: () => void): void {
    this.#keepAlive = write;
  }

  keepAlive(): void {
    this.#keepAlive();
  }

  stop(reason: Error): void {
    this.#controller.abort(reason);
  }

  readonly #left = (): void => this.stop(CLIENT_LEFT);
  /** A reply that nobody reads any more may never begin to read its source, which would dispose of the work. */
  readonly #closed = (): void => {
    this.#left();
    this[Symbol.dispose]();
  };
  readonly #revoked = (): void => this.stop(unauthenticated());

  [Symbol.dispose](): void {
    clearTimeout(this.#timeout);
    this.#response.off('close', this.#closed);
    this.#validity.signal.removeEventListener('abort', this.#revoked);
    this.#validity[Symbol.dispose]();
    this.#onEnd();
  }
}

/** Reason of work that ends because nobody reads its reply any more. */
const CLIENT_LEFT = new Error('The client has closed the connection.');
/** Reason of work that ends because it has lasted as long as its client wants to wait. */
const TIME_IS_UP = new Error('The time of the client is up.');
