// A connection to one keeper, under one fence at a time: claims the keeper, sends pings, and reports when it ends.
import { abortable } from '@shellfleet/concurrency';
import {
  decodeExamined,
  decodeHello,
  decodeLogMessage,
  type Examination,
  encodeExamine,
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameType,
  type Hello,
  KEEPER_PROTOCOL_VERSION,
  MAX_FROM_KEEPER,
  MalformedFrame,
  OLDEST_KEEPER_PROTOCOL,
} from '@shellfleet/keeper';
import { ShellfleetError } from '@shellfleet/protocol';
import { freeBytes } from '../output/free-bytes.ts';
import type { DisconnectReason } from './shell.ts';
import { isToken } from './transport/socket.ts';
import type { Transport } from './transport/transport.ts';

/** Interval of pings. After 6 s without any, the keeper stops its clocks when its ring buffer is full. */
const PING_EVERY_MS = 2_000;
const SILENT_AFTER_MS = 15_000;
const CLAIM_AGAIN_MS = 500;

export interface ConnectionEvents {
  frame(frame: Frame): void;
  disconnected(reason: DisconnectReason): void;
}

export interface KeeperClaim {
  fence: number;
  token: string;
  signal?: AbortSignal;
  /** Receives messages of the keeper's own log, even before the claim. They contain no script, output or secret. */
  onMessage?: (message: string) => void;
}

export interface ClaimOptions extends KeeperClaim {
  transport: Transport;
}

/** A claimed keeper, and its report. Its frames are held until `release`. */
export interface ClaimedKeeper {
  connection: KeeperConnection;
  hello: Hello;
  /** Id of the entry that runs or ran last. */
  id: Uint8Array;
}

export class FencedOff extends Error {
  override name = 'FencedOff';
  readonly fence: number;
  constructor(fence: number) {
    super(`The shell is owned under fence ${fence}.`);
    this.fence = fence;
  }
}

/** Rejection of a claim whose connection the keeper ended before its hello. A living keeper connects again. */
export class EndedUnclaimed extends ShellfleetError {}

/** Claims the keeper and waits for its hello. Rejects with FencedOff when a worker with a higher fence owns it. */
export function claimKeeper({ transport, ...claim }: ClaimOptions): Promise<ClaimedKeeper> {
  return claimOver(new KeeperConnection(transport), claim);
}

/** Claims the keeper of a connection, perhaps once more under a higher fence. See `claimKeeper`. */
export function claimOver(connection: KeeperConnection, options: KeeperClaim): Promise<ClaimedKeeper> {
  return new Promise((resolve, reject) => {
    let lastMessage = '';
    connection.fence = options.fence;
    connection.onMessage = (message) => {
      lastMessage = message;
      options.onMessage?.(message);
    };
    const claim = () => connection.send({ type: FrameType.claim });
    const again = setInterval(claim, CLAIM_AGAIN_MS);
    const settle = () => {
      clearInterval(again);
      options.signal?.removeEventListener('abort', abort);
    };
    const fail = (error: unknown) => {
      settle();
      reject(error);
      connection.close('released');
    };
    const abort = () => fail(options.signal?.reason);
    options.signal?.addEventListener('abort', abort, { once: true });
    connection.listen({
      frame: (frame) => {
        if (frame.type !== FrameType.hello) return;
        const hello = decodeHello(frame.payload);
        if (hello.version < OLDEST_KEEPER_PROTOCOL || hello.oldestWorker > KEEPER_PROTOCOL_VERSION) {
          fail(protocolMismatch(hello.version));
        } else if (!isToken(hello.token, Buffer.from(options.token))) {
          fail(new Error('The keeper has another token than this session.'));
        } else if (frame.fence > options.fence) {
          fail(new FencedOff(frame.fence));
        } else if (frame.fence === options.fence && connection.claimed) {
          settle();
          connection.hold();
          resolve({ connection, hello, id: Uint8Array.from(frame.id) });
        }
      },
      disconnected: (reason) => {
        const last = lastMessage && `. The last message of its log: ${lastMessage}`;
        const message = `The connection to the keeper ended before it was claimed (${reason})${last}.`;
        fail(new EndedUnclaimed('SESSION_START_FAILED', message));
      },
    });
    connection.claimed = true;
    claim();
    if (options.signal?.aborted) abort();
  });
}

/** Returns the error for a sandbox of another version. Its keeper cannot be used, so its shell is lost. */
export function protocolMismatch(keeper: number): ShellfleetError {
  const worker = KEEPER_PROTOCOL_VERSION;
  const message = `Its keeper uses protocol version ${keeper}, and this worker uses version ${worker}.`;
  return new ShellfleetError('PROTOCOL_MISMATCH', message, { keeper, worker });
}

export class KeeperConnection {
  fence = 0;
  claimed = false;
  onMessage: (message: string) => void = () => {};
  readonly #transport: Transport;
  readonly #decoder: FrameDecoder;
  readonly #ping: NodeJS.Timeout;
  #events: ConnectionEvents | undefined;
  #held: Frame[] | undefined;
  /** The last examination, and its number. */
  #examining: (PromiseWithResolvers<Examination> & { number: number }) | undefined;
  #receivedAt = performance.now();
  #paused = false;
  #closed = false;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#decoder = new FrameDecoder({ maxPayload: MAX_FROM_KEEPER, ...(transport.sync && { sync: transport.sync }) });
    this.#ping = setInterval(() => this.#keepAwake(), PING_EVERY_MS);
    this.#ping.unref();
  }

  listen(events: ConnectionEvents): void {
    const first = this.#events === undefined;
    this.#events = events;
    if (first) this.#transport.open({ data: (bytes) => this.#receive(bytes), closed: () => this.close('closed') });
    else if (this.#closed) events.disconnected('closed');
  }

  /** Holds all frames until release(). */
  hold(): void {
    this.#held = [];
  }

  release(events: ConnectionEvents): void {
    this.#events = events;
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const frame of held) this.#deliver(frame);
    if (this.#closed) events.disconnected('closed');
  }

  send(frame: Partial<Frame> & { type: number }): void {
    if (!this.#closed) this.#transport.write(encodeFrame(frame, this.#transport.sync, this.fence));
  }

  /**
   * Asks what the kernel enforces on the sandbox, and which of the addresses (`host:port`) it reaches. Takes about a
   * second for one that does not answer. Rejects when the connection ends, and when another examination begins.
   */
  async examine(probes: readonly string[], signal?: AbortSignal): Promise<Examination> {
    if (this.#closed) throw new Error('There is no connection to the keeper.');
    const payload = encodeExamine(probes);
    const earlier = this.#examining;
    earlier?.reject(new Error('Another examination has begun.'));
    const asked = { ...Promise.withResolvers<Examination>(), number: (earlier?.number ?? 0) + 1 };
    this.#examining = asked;
    this.send({ type: FrameType.examine, offset: asked.number, payload });
    return abortable(asked.promise, signal);
  }

  pause(): void {
    this.#paused = true;
    this.#transport.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#receivedAt = performance.now();
    this.#transport.resume();
  }

  close(reason: DisconnectReason): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#ping);
    this.#transport.close();
    this.#examining?.reject(new Error(`The connection to the keeper ended (${reason}).`));
    if (!this.#held) this.#events?.disconnected(reason);
  }

  #receive(bytes: Uint8Array): void {
    if (this.#closed) return;
    this.#receivedAt = performance.now();
    try {
      const frames = this.#decoder.push(bytes);
      for (const frame of frames) this.#deliver(frame);
      // The receiver copies output. Other frames may be kept, and over attach the decoder keeps the input.
      if (this.#transport.sync === undefined && frames.every(({ type }) => type === FrameType.output))
        for (const memory of [bytes, ...frames.map(({ payload }) => payload)]) freeBytes(memory);
    } catch (error) {
      this.#closeIfMalformed(error);
    }
  }

  #deliver(frame: Frame): void {
    if (this.#closed && !this.#held) return;
    if (frame.type === FrameType.log) {
      this.onMessage(decodeLogMessage(frame.payload));
      return;
    }
    if (this.#held && frame.type !== FrameType.examined) {
      this.#held.push({ ...frame, id: Uint8Array.from(frame.id), payload: Uint8Array.from(frame.payload) });
      return;
    }
    try {
      if (frame.type === FrameType.examined) this.#examined(frame);
      else this.#events?.frame(frame);
    } catch (error) {
      this.#closeIfMalformed(error);
    }
  }

  #examined({ offset, payload }: Frame): void {
    const examination = decodeExamined(payload);
    if (this.#examining?.number === offset) this.#examining.resolve(examination);
  }

  /** Closes the connection at a malformed frame. The keeper then connects again with the same shell. */
  #closeIfMalformed(error: unknown): void {
    if (!(error instanceof MalformedFrame)) throw error;
    this.close('malformed');
  }

  #keepAwake(): void {
    if (!this.#paused && performance.now() - this.#receivedAt > SILENT_AFTER_MS) this.close('silent');
    else this.send({ type: FrameType.ping });
  }
}
