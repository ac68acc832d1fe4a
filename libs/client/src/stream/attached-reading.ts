import { setTimeout as delay } from 'node:timers/promises';
import { Notifier } from '@shellfleet/concurrency';
import {
  entryIdSchema,
  isShellfleetError,
  type LogPage,
  type LogRequest,
  type SessionKeys,
  STREAM_NAMES,
  type StreamName,
} from '@shellfleet/protocol';
import { hostOfEntry } from '../hosts/host-of-entry.ts';
import { type RequestContext, requestFromHost } from '../hosts/request-from-host.ts';

// Reads the output over the stream's budget from the host of a running command.
// ATTACHED-1. Every request is a heartbeat, and has the offsets of everything that the consumer has taken: the host
//     throttles the command to these offsets.
// ATTACHED-2. While the consumer takes nothing, the heartbeats continue.
// ATTACHED-3. At most one page is held here until the consumer takes it.

const HEARTBEAT_MS = 2_000;
/** Least time between two requests. A host of an older version replies at once even without new output. */
const SHORTEST_ROUND_MS = 200;
const RETRY_MS = 500;
/** Longest time without a reply of the host while the rest of the output is read. A worker restarts within seconds. */
const REST_WITHIN_MS = 20_000;

export type ReadOffsets = Record<StreamName, number>;
export type LogPiece = { stream: StreamName; offset: number; data: Uint8Array };

export class AttachedReading implements Disposable {
  readonly #context: RequestContext;
  readonly #keys: SessionKeys;
  readonly #entryId: string;
  readonly #stop = new AbortController();
  readonly #taken = new Notifier();
  /** Offsets up to which the consumer has taken, and this object has read, in redacted bytes of each stream. */
  #consumed: Readonly<ReadOffsets> = { stdout: 0, stderr: 0 };
  #fetched: ReadOffsets = { stdout: 0, stderr: 0 };
  #page: LogPiece[] | undefined;
  #host: string | undefined;
  #started = false;
  #restarts = 0;

  constructor(context: RequestContext, keys: SessionKeys, entryId: string) {
    this.#context = context;
    this.#keys = keys;
    this.#entryId = entryId;
  }

  /** Begins to read. `onPage` is called when a page has arrived. Calls after the first one change nothing. */
  start(onPage: () => void): void {
    if (this.#started) return;
    this.#started = true;
    void this.#read(onPage);
  }

  /** Reports that the consumer has everything before this position. */
  consumed(position: Readonly<ReadOffsets>): void {
    this.#consumed = { ...position };
  }

  /** Begins again at offset 0, because the command runs again. */
  restart(): void {
    this.#restarts += 1;
    this.#consumed = { stdout: 0, stderr: 0 };
    this.#fetched = { stdout: 0, stderr: 0 };
    this.take();
  }

  get page(): readonly LogPiece[] | undefined {
    return this.#page;
  }

  /** Returns the pieces that have arrived since the last call. */
  take(): LogPiece[] {
    const page = this.#page ?? [];
    this.#page = undefined;
    this.#taken.notify();
    return page;
  }

  /** Yields the pieces that the host still has after the command's end. Waits for a host that is restarting. */
  async *rest(
    host: string,
    position: Readonly<ReadOffsets>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<LogPiece> {
    this[Symbol.dispose]();
    const fetched = { ...position };
    let until = performance.now() + REST_WITHIN_MS;
    for (;;) {
      try {
        const { pieces, more } = await this.#request(host, 'reads', fetched, signal);
        advance(fetched, pieces);
        yield* pieces;
        if (!more || pieces.length === 0) return;
        until = performance.now() + REST_WITHIN_MS;
      } catch (error) {
        if (!isAway(error) || signal?.aborted) throw error;
        if (performance.now() > until) return;
        await delay(RETRY_MS);
      }
    }
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
    this.#taken.notify();
  }

  async #read(onPage: () => void): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const from = performance.now();
      try {
        if (this.#page !== undefined) {
          const taken = await this.#taken.wait({ signal, timeoutMs: HEARTBEAT_MS });
          if (!taken) await this.#request(await this.#findHost(), 'waits', this.#consumed, signal);
          continue;
        }
        const position = latest(this.#fetched, this.#consumed);
        const restarts = this.#restarts;
        const { pieces } = await this.#request(await this.#findHost(), 'reads', position, signal);
        // The command has ended or runs again, so the reply is outdated.
        if (signal.aborted || restarts !== this.#restarts) continue;
        if (pieces.length > 0) {
          advance(this.#fetched, pieces);
          this.#page = pieces;
          onPage();
        } else {
          await delay(Math.max(0, SHORTEST_ROUND_MS - (performance.now() - from)));
        }
      } catch {
        // The worker restarts, or Redis is down. If bytes are still missing at the end, they are counted then.
        this.#host = undefined;
        if (!signal.aborted) await delay(RETRY_MS);
      }
    }
  }

  async #request(
    host: string,
    attached: 'reads' | 'waits',
    from: ReadOffsets,
    signal: AbortSignal | undefined,
  ): Promise<LogPage> {
    const entry = entryIdSchema.parse(this.#entryId);
    const request: LogRequest = {
      type: 'log',
      entry,
      streams: [...STREAM_NAMES],
      from,
      attached,
    };
    return requestFromHost(this.#context, host, this.#keys, request, { signal });
  }

  async #findHost(): Promise<string> {
    this.#host ??= await hostOfEntry(this.#context.redis, this.#keys, this.#entryId);
    if (!this.#host) throw new Error('no host runs it');
    return this.#host;
  }
}

/** Moves the position behind the pieces. */
function advance(position: ReadOffsets, pieces: readonly LogPiece[]): void {
  for (const { stream, offset, data } of pieces)
    position[stream] = Math.max(position[stream], offset + data.byteLength);
}

function latest(a: Readonly<ReadOffsets>, b: Readonly<ReadOffsets>): ReadOffsets {
  return { stdout: Math.max(a.stdout, b.stdout), stderr: Math.max(a.stderr, b.stderr) };
}

const isAway = (error: unknown) =>
  isShellfleetError(error) && ['HOST_UNREACHABLE', 'QUEUE_UNAVAILABLE'].includes(error.code);
