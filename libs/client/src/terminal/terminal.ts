import { abortable } from '@shellfleet/concurrency';
import { readTerminalOutput, type TerminalInputReply } from '@shellfleet/mailbox';
import {
  fromTerminalText,
  parseOrThrow,
  ShellfleetError,
  TERMINAL_BEAT_MS,
  TERMINAL_MESSAGES,
  TERMINAL_TTL_MS,
  type TerminalOutputMessage,
  terminalKeys,
  terminalOutputMessageSchema,
  terminalSizeSchema,
} from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import { sealPlace } from '@shellfleet/sealing';
import { isHostAlive } from '../hosts/is-host-alive.ts';
import type { RequestContext } from '../hosts/request-from-host.ts';
import type { StreamContext } from '../stream/stream-reader.ts';
import type { OpenSession } from '../submit/open-session.ts';
import type { SubmitContext } from '../submit/send-entry.ts';
import { ByteQueue } from './byte-queue.ts';
import { TerminalSender } from './terminal-sender.ts';

export interface TerminalContext extends StreamContext, SubmitContext, RequestContext {}

/** How a terminal ended. */
export interface TerminalEnd {
  /**
   * Reason of the end. `exited`, `signalled`: the shell ended, by itself or by a signal. `hung-up`: the terminal or its
   * session was closed, or its user was away for 30 s. `blocked`: a redaction rule blocks its output.
   */
  reason: 'exited' | 'signalled' | 'hung-up' | 'blocked';
  /** Exit code of a shell that ended by itself; else null. */
  exitCode: number | null;
  /** Number of the signal that ended the shell; else null. */
  signal: number | null;
}

const MESSAGES_PER_READ = 32;
/** Number of read messages after which the mailbox is told, so that it makes room for more. */
const REPORT_AFTER = TERMINAL_MESSAGES / 4;
const CLOSED_WITHIN_MS = 5_000;

/** An interactive terminal with an additional shell of a session. It ends when this process is away for 30 s. */
export class Terminal implements AsyncDisposable {
  /** Resolves when the terminal has ended. Rejects with SESSION_LOST, SESSION_CLOSED or HOST_UNREACHABLE. */
  readonly ended: Promise<TerminalEnd>;
  readonly #context: TerminalContext;
  readonly #session: OpenSession;
  readonly #id: string;
  readonly #sender: TerminalSender;
  readonly #queue = new ByteQueue();
  readonly #end = Promise.withResolvers<TerminalEnd>();
  readonly #over = new AbortController();
  readonly #beat: NodeJS.Timeout;
  #read = 0;
  #sentRead = 0;
  #reportedRead = 0;
  #host = '';
  #hostSeenAt = performance.now();

  /** @internal */
  constructor(
    context: TerminalContext,
    session: OpenSession,
    id: string,
    size: { rows: number; cols: number },
    signal: AbortSignal | undefined,
  ) {
    const { redis, sealer } = context;
    this.#context = context;
    this.#session = session;
    this.#id = id;
    this.ended = this.#end.promise;
    this.ended.catch(() => {});
    this.#sender = new TerminalSender({
      ...{ redis, sealer, session, terminal: id },
      read: () => {
        this.#sentRead = this.#read;
        return this.#read;
      },
      onReply: (answer) => this.#receive(answer),
      onFailed: (error) => this.#fail(error),
    });
    this.#beat = setInterval(() => void this.#renew(), TERMINAL_BEAT_MS).unref();
    // The signal may outlive many terminals, so it must not hold this one after its end.
    signal?.addEventListener('abort', () => void this.#abort(signal.reason), { once: true, signal: this.#over.signal });
    // The first message marks the terminal as in use, so that a host that adopts its shell continues it.
    this.resize(size.rows, size.cols);
    void this.#follow().catch((error: unknown) => this.#fail(error));
  }

  /**
   * Yields the output, live, for one reader. While the output is not read, programs block when they write. Ends with
   * the terminal.
   */
  output(): AsyncGenerator<Uint8Array> {
    return this.#queue[Symbol.asyncIterator]();
  }

  /** Sends input. Resolves when the mailbox has stored the input, which is then typed once. Rejects as `ended`. */
  async write(data: string | Uint8Array): Promise<void> {
    await this.#sender.write(Buffer.from(data as string));
    if (this.#over.signal.aborted) await this.ended;
  }

  /** Sets the size in characters. Throws COMMAND_INVALID. */
  resize(rows: number, cols: number): void {
    this.#sender.resize(parseOrThrow(terminalSizeSchema, { rows, columns: cols }, 'COMMAND_INVALID', 'The size'));
  }

  /** Hangs the terminal up. Resolves when it has ended, after 5 s at most. */
  async close(): Promise<void> {
    if (this.#over.signal.aborted) return;
    this.#sender.close();
    // The reader may have stopped reading, so the remaining output is discarded.
    this.#queue.discard();
    await abortable(this.ended, AbortSignal.timeout(CLOSED_WITHIN_MS)).catch(() => {});
    this.#finish();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #follow(): Promise<void> {
    const { redis, feeds } = this.#context;
    const { signal } = this.#over;
    const { keys } = this.#session;
    const { feed } = terminalKeys(keys, this.#id);
    using wake = await feeds.follow(feed);
    while (!signal.aborted) {
      const read = () => readTerminalOutput(redis, keys, this.#id, this.#read, MESSAGES_PER_READ);
      const entries = await retryWhileRedisIsDown(read, signal, {
        errorReplies: 'throw',
        waitBeforeRetry: () => wake.next(signal),
      });
      for (const { number, sealed } of entries) this.#receiveOutput(number, sealed);
      if (this.#read - this.#reportedRead >= REPORT_AFTER) this.#sender.send();
      await abortable(this.#queue.hasRoom(), signal);
      if (entries.length === 0) await wake.next(signal);
    }
  }

  #receiveOutput(number: number, sealed: string): void {
    const place = sealPlace('terminal-output', this.#session.keys, { terminal: this.#id, number });
    const plain: unknown = JSON.parse(this.#context.sealer.open(sealed, place));
    const message: TerminalOutputMessage = parseOrThrow(
      terminalOutputMessageSchema,
      plain,
      'INTERNAL',
      'The output of a terminal',
    );
    if (number !== this.#read + 1) throw this.#lost('a part of its output was lost');
    this.#read = number;
    if (message.type === 'output') this.#queue.push(fromTerminalText(message.data));
    else this.#receiveEnd(message);
  }

  #receiveEnd({ reason, exitCode, signal }: Extract<TerminalOutputMessage, { type: 'end' }>): void {
    if (reason === 'lost') throw this.#lost('its sandbox is gone');
    this.#end.resolve({ reason, exitCode, signal });
    this.#finish();
  }

  async #renew(): Promise<void> {
    this.#sender.send();
    // If the host is gone for good, no message reports it.
    const alive = this.#host !== '' && (await isHostAlive(this.#context, this.#host).catch(() => true));
    if (alive) this.#hostSeenAt = performance.now();
    else if (performance.now() - this.#hostSeenAt > TERMINAL_TTL_MS) {
      const message = `The host of session ${this.#session.id} has been unreachable for ${TERMINAL_TTL_MS / 1_000} s. Attach again when it is back.`;
      this.#fail(new ShellfleetError('HOST_UNREACHABLE', message, { sessionId: this.#session.id, hostId: this.#host }));
    }
  }

  #receive(answer: TerminalInputReply): void {
    if (answer.type === 'closed') void this.#failUnlessEnded(sessionClosed(this.#session.id));
    else if (answer.type === 'unknown')
      this.#fail(this.#lost('this process did not reach Redis for 30 s, so it was closed'));
    else {
      this.#host = answer.host;
      this.#reportedRead = this.#sentRead;
    }
  }

  /** Waits for an end that the host may still report. Fails with the error if none is reported. */
  async #failUnlessEnded(error: unknown): Promise<void> {
    await abortable(this.ended, AbortSignal.timeout(1_000)).catch(() => this.#fail(error));
  }

  #abort(reason: unknown): void {
    this.#sender.close();
    void abortable(this.ended, AbortSignal.timeout(1_000))
      .catch(() => {})
      .then(() => this.#fail(reason));
  }

  #fail(error: unknown): void {
    if (this.#over.signal.aborted) return;
    this.#end.reject(error);
    this.#finish();
  }

  #finish(): void {
    this.#over.abort();
    clearInterval(this.#beat);
    this.#sender.end();
    this.#queue.end();
  }

  #lost(why: string): ShellfleetError {
    return new ShellfleetError('SESSION_LOST', `The terminal in session ${this.#session.id} is gone: ${why}.`, {
      sessionId: this.#session.id,
    });
  }
}

export function sessionClosed(id: string): ShellfleetError {
  return new ShellfleetError(
    'SESSION_CLOSED',
    `Session ${id} was closed. fleet.session('${id}') opens this id again.`,
    {
      sessionId: id,
    },
  );
}
