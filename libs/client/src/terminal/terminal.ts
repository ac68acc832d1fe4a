import { abortable } from '@shellfleet/concurrency';
import { readTerminalOutput, retryWhileRedisIsDown, sealPlace, type TerminalInputAnswer } from '@shellfleet/mailbox';
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
import type { AskContext } from '../hosts/ask-host.ts';
import { isHostAlive } from '../hosts/call-host.ts';
import type { StreamContext } from '../stream/stream-reader.ts';
import type { OpenSession } from '../submit/open-session.ts';
import type { SubmitContext } from '../submit/send-entry.ts';
import { ByteQueue } from './byte-queue.ts';
import { Speech } from './speech.ts';

/** What a terminal needs of a view. */
export interface TerminalContext extends StreamContext, SubmitContext, AskContext {}

export interface TerminalEnd {
  /**
   * Its shell ended, was ended by a signal, or was hung up: by `close`, by the session's end, or because nobody was there; or a rule of
   * the session blocks what it would have shown.
   */
  reason: 'exited' | 'signalled' | 'hung-up' | 'blocked';
  exitCode: number | null;
  /** number of the signal */
  signal: number | null;
}

const MESSAGES_A_READ = 32;
/** What was read makes room for more at least this often. */
const SAY_AFTER = TERMINAL_MESSAGES / 4;
const CLOSED_WITHIN_MS = 5_000;

/** A shell of its own in a session's sandbox, at a terminal. It ends when nobody was there for 30 s. */
export class Terminal implements AsyncDisposable {
  /** What it shows, as it comes, to one reader; who does not read makes its programs wait. Ends with the terminal. */
  readonly output: AsyncIterable<Uint8Array>;
  /** Rejects with SESSION_LOST, SESSION_CLOSED, HOST_UNREACHABLE or QUEUE_UNAVAILABLE, or with the reason of the signal. */
  readonly ended: Promise<TerminalEnd>;
  readonly #context: TerminalContext;
  readonly #session: OpenSession;
  readonly #id: string;
  readonly #speech: Speech;
  readonly #queue = new ByteQueue();
  readonly #end = Promise.withResolvers<TerminalEnd>();
  readonly #over = new AbortController();
  readonly #beat: NodeJS.Timeout;
  #read = 0;
  #sayingRead = 0;
  #saidRead = 0;
  #host = '';
  #hostSeenAt = Date.now();

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
    this.output = this.#queue;
    this.ended = this.#end.promise;
    this.ended.catch(() => {});
    this.#speech = new Speech({
      ...{ redis, sealer, session, terminal: id },
      read: () => {
        this.#sayingRead = this.#read;
        return this.#read;
      },
      onAnswer: (answer) => this.#hear(answer),
      onFailed: (error) => this.#fail(error),
    });
    this.#beat = setInterval(() => void this.#sayThere(), TERMINAL_BEAT_MS).unref();
    signal?.addEventListener('abort', () => void this.#abort(signal.reason), { once: true });
    // The first word says that it is in use: a host that takes over then goes on with it.
    this.resize(size.rows, size.cols);
    void this.#follow().catch((error: unknown) => this.#fail(error));
  }

  /** Resolves when it is on its way: then it is typed, once. */
  async write(data: string | Uint8Array): Promise<void> {
    await this.#speech.write(Buffer.from(data as string));
    if (this.#over.signal.aborted) await this.ended;
  }

  resize(rows: number, cols: number): void {
    this.#speech.resize(parseOrThrow(terminalSizeSchema, { rows, columns: cols }, 'COMMAND_INVALID', 'The size'));
  }

  /** Hangs it up, and resolves when it has ended. */
  async close(): Promise<void> {
    if (this.#over.signal.aborted) return;
    this.#speech.close();
    // Nobody may be reading.
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
      const read = () => readTerminalOutput(redis, keys, this.#id, this.#read, MESSAGES_A_READ);
      const entries = await retryWhileRedisIsDown(read, signal, {
        errorReplies: 'throw',
        waitBeforeRetry: () => wake.next(signal),
      });
      for (const { number, sealed } of entries) this.#show(number, sealed);
      if (this.#read - this.#saidRead >= SAY_AFTER) this.#speech.speak();
      await abortable(this.#queue.hasRoom(), signal);
      if (entries.length === 0) await wake.next(signal);
    }
  }

  #show(number: number, sealed: string): void {
    const place = sealPlace('terminal-output', this.#session.keys, { terminal: this.#id, number });
    const plain: unknown = JSON.parse(this.#context.sealer.open(sealed, place));
    const message: TerminalOutputMessage = parseOrThrow(
      terminalOutputMessageSchema,
      plain,
      'INTERNAL',
      'What a terminal shows',
    );
    if (number !== this.#read + 1) throw this.#lost('something that it showed was lost');
    this.#read = number;
    if (message.type === 'output') this.#queue.push(fromTerminalText(message.data));
    else this.#noteEnd(message);
  }

  #noteEnd({ reason, exitCode, signal }: Extract<TerminalOutputMessage, { type: 'end' }>): void {
    if (reason === 'lost') throw this.#lost('its sandbox is gone');
    this.#end.resolve({ reason, exitCode, signal });
    this.#finish();
  }

  async #sayThere(): Promise<void> {
    this.#speech.speak();
    // The host may be gone for good; nobody else would say so.
    const alive = this.#host !== '' && (await isHostAlive(this.#context, this.#host).catch(() => true));
    if (alive) this.#hostSeenAt = Date.now();
    else if (Date.now() - this.#hostSeenAt > TERMINAL_TTL_MS) {
      const message = `The host of session ${this.#session.id} has not been there for ${TERMINAL_TTL_MS / 1_000} s. Attach again when it is back.`;
      this.#fail(new ShellfleetError('HOST_UNREACHABLE', message, { sessionId: this.#session.id, hostId: this.#host }));
    }
  }

  #hear(answer: TerminalInputAnswer): void {
    if (answer.type === 'closed') void this.#failAfterLastWords(sessionClosed(this.#session.id));
    else if (answer.type === 'unknown') this.#fail(this.#lost('nobody was heard of for 30 s, so it was closed'));
    else {
      this.#host = answer.host;
      this.#saidRead = this.#sayingRead;
    }
  }

  /** The host says how it ended, if it still can. */
  async #failAfterLastWords(error: unknown): Promise<void> {
    await abortable(this.ended, AbortSignal.timeout(1_000)).catch(() => this.#fail(error));
  }

  #abort(reason: unknown): void {
    this.#speech.close();
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
    this.#speech.end();
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
    `Session ${id} was closed. fleet.session('${id}') starts the next life of this id.`,
    {
      sessionId: id,
    },
  );
}
