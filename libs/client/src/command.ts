import { context, type Span, SpanKind, trace } from '@opentelemetry/api';
import { abortable } from '@shellfleet/concurrency';
import {
  ATTRIBUTES,
  fromWireResult,
  type LogChunk,
  type OutputChunk,
  type Result,
  SPANS,
  toCommandId,
} from '@shellfleet/protocol';
import type { Pending } from './results/pending-results.ts';
import { openResult } from './results/read-result.ts';
import { endFailed, startSpan } from './spans.ts';
import { StdinWriter, type WriteOptions } from './stdin/write-stdin.ts';
import { type LogOptions, readLog } from './stream/command-log.ts';
import { findRecord, followOutput } from './stream/command-output.ts';
import { parseCursor } from './stream/stream-reader.ts';
import { followWholeOutput } from './stream/whole-output.ts';
import { cancelEntry } from './submit/cancel-entry.ts';
import type { FleetView } from './view.ts';

/** Where reading begins, and when it ends. */
export interface FollowOptions {
  /**
   * Id of a chunk or event to start after.
   * @default from the beginning
   */
  after?: string | undefined;
  /** Ends the reading with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /**
   * Whether to continue to the end of the command or session. With `false`, reading stops after the stored events.
   * @default true
   */
  follow?: boolean | undefined;
  /**
   * Whether chunks of output have their `text`. With `false` it may be empty, and many readers cost less.
   * @default true
   */
  text?: boolean | undefined;
}

/** What is known about a command now. */
export interface CommandInfo {
  /** Id of the command. */
  id: string;
  /** The session of the command. */
  sessionId: string;
  /** Whether it waits for its turn, a slot or a person (`queued`), runs, or has ended. */
  state: 'queued' | 'running' | 'ended';
  /** The Result of a command that has ended. */
  result?: Result;
}

interface CommandState {
  deduplicated: boolean;
  /** Whether another view or process submitted the command. Then this view's inbox gets no notice of its end. */
  foreign: boolean;
  onOutput?: ((chunk: OutputChunk) => void) | undefined;
  /** Present for a command with `attachReader`. */
  attached?: { reportAfterBytes: number } | undefined;
  /** Settles when the stdin that this process streams has been sent. */
  streaming?: Promise<void> | undefined;
}

/** An accepted command. Any process can read its output and Result, write its stdin and cancel it. */
export class Command {
  /** `<session>.<ULID>`; `fleet.command(id)` finds the command from any process. */
  readonly id: string;
  /** The session of the command. */
  readonly sessionId: string;
  readonly #view: FleetView;
  readonly #pending: Pending;
  readonly #state: CommandState;
  readonly #delivered: Promise<void> | undefined;
  readonly #stdin: StdinWriter;

  /** @internal */
  constructor(view: FleetView, pending: Pending, state: CommandState) {
    this.#view = view;
    this.#pending = pending;
    this.#state = state;
    this.sessionId = pending.keys.session;
    this.id = toCommandId(this.sessionId, pending.entryId);
    this.#stdin = new StdinWriter(view, pending.keys, pending.entryId);
    this.#delivered = state.onOutput === undefined ? undefined : this.#deliver(state.onOutput);
    // Prevents an unhandled rejection. result() rejects with the same error.
    this.#delivered?.catch(() => {});
  }

  /** Whether the submit found this command by its idempotency key, so that no new command was accepted. */
  get deduplicated(): boolean {
    return this.#state.deduplicated;
  }

  /**
   * Yields the redacted output, live, from the beginning or after the chunk `after`, to the command's end, for any
   * number of readers; each holds one page. Missing bytes are counted in `omittedBytes` of a chunk; `log` may have
   * them. Rejects with RESULT_EXPIRED when the record is gone. With `attachReader`, a reader from the beginning also
   * receives what the stream does not carry, in chunks with the id of the last event before them.
   */
  output(options: FollowOptions = {}): AsyncGenerator<OutputChunk> {
    const position = { ...options, after: parseCursor(options.after) };
    const { keys, entryId } = this.#pending;
    const { attached } = this.#state;
    if (attached === undefined || position.after !== undefined || options.follow === false)
      return followOutput(this.#view, keys, entryId, position);
    return followWholeOutput(this.#view, keys, entryId, { ...attached, signal: options.signal });
  }

  /**
   * Yields the whole redacted log, or a range of it: from the stream, then from the disk of its host. Bytes that are
   * gone are counted in `omittedBytes`. Rejects with COMMAND_INVALID for an invalid range, HOST_UNREACHABLE when the
   * host of the rest does not reply, and LOG_EXPIRED when nothing is left.
   */
  log(options: LogOptions = {}): AsyncGenerator<LogChunk> {
    return readLog(this.#view, this.#pending.keys, this.#pending.entryId, options);
  }

  /**
   * Returns the Result, after `onOutput` has received all output. Rejects with RESULT_EXPIRED, or the signal's reason.
   */
  async result(options: { signal?: AbortSignal | undefined } = {}): Promise<Result> {
    const { span } = this.#pending;
    return span === undefined ? this.#receive(options) : traceReceive(span, this.id, () => this.#receive(options));
  }

  async #receive({ signal }: { signal?: AbortSignal | undefined }): Promise<Result> {
    if (this.#state.foreign) await this.#watch(signal);
    const stored = await this.#pending.result(signal);
    const { keys, entryId } = this.#pending;
    const wire = openResult(this.#view.sealer, keys, entryId, stored);
    if (this.#delivered !== undefined) await abortable(this.#delivered, signal);
    return fromWireResult({ commandId: this.id, sessionId: this.sessionId }, wire, this.#state.deduplicated);
  }

  /** Returns the state of the command, and the Result if it has ended. Rejects with RESULT_EXPIRED. */
  async info(): Promise<CommandInfo> {
    const { id, sessionId } = this;
    const result = await this.resultNow();
    if (result !== undefined) return { id, sessionId, state: 'ended', result };
    const record = await findRecord(this.#view.redis, this.#pending.keys, this.#pending.entryId);
    if (record.state === 'ended') return { id, sessionId, state: 'ended', result: await this.result() };
    return { id, sessionId, state: record.state === 'running' ? 'running' : 'queued' };
  }

  /** @internal Returns the Result if the command has ended and its record is kept. */
  async resultNow(): Promise<Result | undefined> {
    await this.#view.pending.lookAt([this.#pending]);
    return this.#pending.settled?.type === 'result' ? this.result() : undefined;
  }

  /**
   * Appends to the stdin of a command with `stdin: { open: true }`, in the order of the calls, also before its start.
   * Waits while 4 MiB are unread, and retries for 10 s while Redis is down. Rejects with COMMAND_INVALID when the
   * command has ended or the stdin is closed.
   */
  write(data: string | Uint8Array, options?: WriteOptions): Promise<void> {
    return this.#stdin.write(data, options);
  }

  /** Ends the stdin after everything that was written. Does nothing for a closed stdin or an ended command. */
  closeStdin(): Promise<void> {
    return this.#stdin.close();
  }

  /**
   * Resolves when this process may end: its streamed stdin is stored, or the command reads no more of it. Never
   * rejects.
   */
  stdinSent(): Promise<void> {
    return this.#state.streaming ?? Promise.resolve();
  }

  /** Cancels the command. Resolves to false if the command had already ended. `reason`: at most 1,024 characters. */
  cancel(reason?: string): Promise<boolean> {
    return cancelEntry(this.#view, this.#pending.keys, this.#pending.entryId, reason);
  }

  async #watch(signal: AbortSignal | undefined): Promise<void> {
    const { pending, feeds } = this.#view;
    using wake = await feeds.follow(this.#pending.keys.feed);
    for (;;) {
      await pending.lookAt([this.#pending]).catch(() => {});
      if (this.#pending.settled !== undefined) return;
      await wake.next(signal);
    }
  }

  async #deliver(onOutput: (chunk: OutputChunk) => void): Promise<void> {
    for await (const chunk of this.output()) onOutput(chunk);
  }
}

const CLIENT = { kind: SpanKind.CLIENT } as const;

/** Traces a wait for a Result, as a child of the submit. */
async function traceReceive(sent: Span, commandId: string, receive: () => Promise<Result>): Promise<Result> {
  const span = startSpan(SPANS.receive, CLIENT, trace.setSpan(context.active(), sent));
  span?.setAttributes({
    [ATTRIBUTES.messagingSystem]: 'shellfleet',
    [ATTRIBUTES.messagingOperationName]: 'receive',
    [ATTRIBUTES.messagingOperationType]: 'receive',
    [ATTRIBUTES.messagingDestination]: 'inbox',
    [ATTRIBUTES.commandId]: commandId,
  });
  try {
    const result = await receive();
    span?.setAttribute(ATTRIBUTES.outcome, result.outcome).end();
    return result;
  } catch (error) {
    if (span !== undefined) endFailed(span, error);
    throw error;
  }
}
