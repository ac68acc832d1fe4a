import { abortable } from '@shellfleet/concurrency';
import { fromWireResult, type LogChunk, type OutputChunk, type Result, toCommandId } from '@shellfleet/protocol';
import type { Pending } from './results/pending-results.ts';
import { OpenStdin, type WriteOptions } from './stdin/write-stdin.ts';
import { type LogOptions, readLog } from './stream/command-log.ts';
import { followOutput } from './stream/command-output.ts';
import { parseCursor } from './stream/stream-reader.ts';
import { cancelEntry } from './submit/cancel-entry.ts';
import type { View } from './view.ts';

export interface FollowOptions {
  /** Go on behind this chunk or event. */
  after?: string;
  signal?: AbortSignal;
  /** false: give what is there now, and end. */
  follow?: boolean;
}

interface CommandState {
  deduplicated: boolean;
  /** No notice of it reaches this process's inbox: it was submitted by another. */
  foreign: boolean;
  onOutput?: ((chunk: OutputChunk) => void) | undefined;
  /** Its stdin is on its way from this process. */
  streaming?: Promise<void> | undefined;
}

/** An accepted command: its output, its one Result, and the way to cancel it, from whatever process. */
export class Command {
  readonly id: string;
  readonly sessionId: string;
  readonly #view: View;
  readonly #pending: Pending;
  readonly #state: CommandState;
  readonly #told: Promise<void> | undefined;
  readonly #stdin: OpenStdin;

  /** @internal */
  constructor(view: View, pending: Pending, state: CommandState) {
    this.#view = view;
    this.#pending = pending;
    this.#state = state;
    this.sessionId = pending.keys.session;
    this.id = toCommandId(this.sessionId, pending.entryId);
    this.#stdin = new OpenStdin(view, pending.keys, pending.entryId);
    this.#told = state.onOutput === undefined ? undefined : this.#tell(state.onOutput);
    // Whoever asks for the result hears of it.
    this.#told?.catch(() => {});
  }

  /** Live, from the beginning or behind a chunk that the caller has; ends with the command. Any number of readers. */
  output(options: FollowOptions = {}): AsyncGenerator<OutputChunk> {
    const position = { ...options, after: parseCursor(options.after) };
    return followOutput(this.#view, this.#pending.keys, this.#pending.entryId, position);
  }

  /**
   * The whole redacted log, or a range of it: what the stream carries, then what its host keeps on its disk. What is gone is counted.
   * Throws HOST_UNREACHABLE, LOG_EXPIRED.
   */
  log(options: LogOptions = {}): AsyncGenerator<LogChunk> {
    return readLog(this.#view, this.#pending.keys, this.#pending.entryId, options);
  }

  /** The one Result; every chunk was given to `onOutput` before. Rejects when the signal aborts, and the command goes on. */
  async result(options: { signal?: AbortSignal } = {}): Promise<Result> {
    const { signal } = options;
    if (this.#state.foreign) await this.#watch(signal);
    const wire = await this.#pending.result(signal);
    if (this.#told !== undefined) await abortable(this.#told, signal);
    return fromWireResult({ commandId: this.id, sessionId: this.sessionId }, wire, this.#state.deduplicated);
  }

  /**
   * Adds to the stdin of a command that was submitted with `stdin: 'open'`, in the order of the calls, also before it has started. Waits while 4 MiB are unread.
   * Rejects with COMMAND_INVALID when the command has ended, or its stdin is closed.
   */
  write(data: string | Uint8Array, options?: WriteOptions): Promise<void> {
    return this.#stdin.write(data, options);
  }

  /** The end of its stdin, behind everything that was written. Again, or after its end, it changes nothing. */
  closeStdin(): Promise<void> {
    return this.#stdin.close();
  }

  /** Resolves when a stdin that this process streams is stored to its end, or the command wants no more of it: from then on this process may go. */
  stdinSent(): Promise<void> {
    return this.#state.streaming ?? Promise.resolve();
  }

  /** True: this call will end it as a cancellation. False: it had already ended, however. */
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

  async #tell(onOutput: (chunk: OutputChunk) => void): Promise<void> {
    for await (const chunk of this.output()) onOutput(chunk);
  }
}
