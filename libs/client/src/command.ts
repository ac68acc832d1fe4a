import { abortable } from '@shellfleet/concurrency';
import { fromWireResult, type LogChunk, type OutputChunk, type Result, toCommandId } from '@shellfleet/protocol';
import type { Pending } from './results/pending-results.ts';
import { StdinWriter, type WriteOptions } from './stdin/write-stdin.ts';
import { type LogOptions, readLog } from './stream/command-log.ts';
import { followOutput } from './stream/command-output.ts';
import { openResult } from './stream/open-reason.ts';
import { parseCursor } from './stream/stream-reader.ts';
import { followWholeOutput } from './stream/whole-output.ts';
import { cancelEntry } from './submit/cancel-entry.ts';
import type { FleetView } from './view.ts';

/** Where reading begins, and when it ends. */
export interface FollowOptions {
  /**
   * Start after the chunk or event with this id.
   * @default from the beginning
   */
  after?: string | undefined;
  /** Ends the reading with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /**
   * `false`: end after what is stored now.
   * @default true
   */
  follow?: boolean | undefined;
}

interface CommandState {
  deduplicated: boolean;
  /** Another view or process submitted it, so no notice of its end comes to this inbox. */
  foreign: boolean;
  onOutput?: ((chunk: OutputChunk) => void) | undefined;
  /** It was submitted with `attachReader`. */
  attached?: { reportAfterBytes: number } | undefined;
  /** Settles when the stdin that this process streams is sent. */
  streaming?: Promise<void> | undefined;
}

/** An accepted command. Any process can read its output and Result, write its stdin and cancel it. */
export class Command {
  /** `<session>.<ULID>`; `fleet.command(id)` finds it from any process. */
  readonly id: string;
  /** The session in which it runs. */
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
    // result() rejects with its error.
    this.#delivered?.catch(() => {});
  }

  /** The idempotency key of its submit stood for a command that was accepted before: this one. */
  get deduplicated(): boolean {
    return this.#state.deduplicated;
  }

  /**
   * The redacted output, live, from the beginning or after the chunk `after`. Ends with the command. Any number of readers; each holds one page.
   * Bytes that are missing are counted in `omittedBytes` of a chunk; `log` may still have them. Rejects with RESULT_EXPIRED when its record is gone.
   *
   * Of a command that was submitted with `attachReader`, a reader that begins at the beginning also receives what the stream does not carry; those chunks have
   * the id of the last entry of the stream before them.
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
   * The whole redacted log, or a range of it: from the stream, then from the disk of its host. Bytes that are gone are counted in
   * `omittedBytes`. Rejects with COMMAND_INVALID for a range that is not valid, HOST_UNREACHABLE when its host has the rest and does not answer,
   * and LOG_EXPIRED when nothing is left.
   */
  log(options: LogOptions = {}): AsyncGenerator<LogChunk> {
    return readLog(this.#view, this.#pending.keys, this.#pending.entryId, options);
  }

  /** The Result, after every chunk was given to `onOutput`. Rejects with RESULT_EXPIRED when it is no longer kept, and with the reason of the signal; the command goes on then. */
  async result(options: { signal?: AbortSignal | undefined } = {}): Promise<Result> {
    const { signal } = options;
    if (this.#state.foreign) await this.#watch(signal);
    const stored = await this.#pending.result(signal);
    const { keys, entryId } = this.#pending;
    const wire = openResult(this.#view.sealer, keys, entryId, stored);
    if (this.#delivered !== undefined) await abortable(this.#delivered, signal);
    return fromWireResult({ commandId: this.id, sessionId: this.sessionId }, wire, this.#state.deduplicated);
  }

  /** @internal Its Result when it has ended and its record is kept; else undefined. */
  async resultNow(): Promise<Result | undefined> {
    await this.#view.pending.lookAt([this.#pending]);
    return this.#pending.settled?.type === 'result' ? this.result() : undefined;
  }

  /**
   * Appends to the stdin of a command that was submitted with `stdin: { open: true }`, in the order of the calls, also before it has started. Waits while
   * 4 MiB are unread, and retries for 10 s while Redis is down. Rejects with COMMAND_INVALID when the command has ended or its stdin is closed.
   */
  write(data: string | Uint8Array, options?: WriteOptions): Promise<void> {
    return this.#stdin.write(data, options);
  }

  /** Ends its stdin after everything that was written. Has no effect on a closed stdin, or after the end of the command. */
  closeStdin(): Promise<void> {
    return this.#stdin.close();
  }

  /** Resolves when the stdin that this process streams is stored to its end, or the command reads no more of it. Then this process may end. Never rejects. */
  stdinSent(): Promise<void> {
    return this.#state.streaming ?? Promise.resolve();
  }

  /** Cancels the command. Resolves to true when it ends, or will end, as a cancellation, and to false when it had ended before. `reason`: at most 1,024 characters. */
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
