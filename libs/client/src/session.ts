import { CallOrder } from '@shellfleet/concurrency';
import type { Result, SessionEvent, SessionInfo } from '@shellfleet/protocol';
import { Command, type FollowOptions } from './command.ts';
import type { Files } from './files/files.ts';
import { throwUnlessDone } from './files/run-operation.ts';
import { SessionFiles } from './files/session-files.ts';
import { readSessionInfo } from './read/session-info.ts';
import { streamStdin } from './stdin/stream-stdin.ts';
import { followEvents } from './stream/session-events.ts';
import { parseCursor } from './stream/stream-reader.ts';
import { closeSession } from './submit/close-session.ts';
import type { OpenSession } from './submit/open-session.ts';
import { parseCommand, type RunOptions } from './submit/parse-command.ts';
import { sendEntry } from './submit/send-entry.ts';
import { type AttachOptions, openTerminal } from './terminal/open-terminal.ts';
import type { Terminal } from './terminal/terminal.ts';
import type { View } from './view.ts';

/** One life of a session, as its callers use it. */
export class Session {
  readonly id: string;
  readonly files: Files;
  readonly #view: View;
  readonly #open: OpenSession;
  readonly #order = new CallOrder();

  /** @internal */
  constructor(view: View, open: OpenSession) {
    this.#view = view;
    this.#open = open;
    this.id = open.id;
    this.files = new SessionFiles(view, open, this.#order);
  }

  /** submit, then result. A command that fails is data: this rejects only when the command was not accepted, or the signal aborts. */
  async run(script: string, options: RunOptions = {}): Promise<Result> {
    const command = await this.submit(script, options);
    return command.result(options.signal === undefined ? {} : { signal: options.signal });
  }

  /** Accepted in call order, awaited or not. Resolves when it is accepted. */
  async submit(script: string, options: RunOptions = {}): Promise<Command> {
    options.signal?.throwIfAborted();
    const { payload, stream, options: parsed } = parseCommand(script, options, this.#open.spec);
    const { pending, deduplicated } = await this.#order.run(() =>
      sendEntry(this.#view, this.#open, payload, {
        durable: parsed.durable,
        retry: parsed.retry,
        ...(parsed.idempotencyKey === undefined ? {} : { idempotencyKey: parsed.idempotencyKey }),
        ...(parsed.startDeadlineMs === undefined ? {} : { startDeadlineMs: parsed.startDeadlineMs }),
      }),
    );
    // What an idempotency key stands for has a stdin of its own.
    const streams = stream !== undefined && !deduplicated;
    return new Command(this.#view, pending, {
      deduplicated,
      streaming: streams ? streamStdin(this.#view, pending.keys, pending.entryId, stream) : undefined,
      foreign: deduplicated && pending.resubmit === undefined,
      onOutput: options.onOutput,
    });
  }

  /** An interactive terminal in the sandbox: a shell of its own, beside the commands. */
  attach(options: AttachOptions = {}): Promise<Terminal> {
    return openTerminal(this.#view, this.#open, this.#order, options);
  }

  /** Replaces the shell with a fresh one, in order with the commands. */
  async restart(): Promise<void> {
    const { pending } = await this.#order.run(() => sendEntry(this.#view, this.#open, { type: 'restart' }));
    throwUnlessDone(await pending.result(), `the restart of session ${this.id}`);
  }

  /** Running and queued commands end as cancellations; sandbox and slot are freed; then it resolves. */
  close(): Promise<void> {
    return closeSession(this.#view, this.#open.keys, this.#open.generation);
  }

  info(): Promise<SessionInfo> {
    return readSessionInfo(this.#view, this.#open.keys);
  }

  /** Everything that happens in this life, from its beginning or behind an event that the caller has; ends with the life. */
  events(options: FollowOptions = {}): AsyncGenerator<SessionEvent> {
    const position = { ...options, after: parseCursor(options.after) };
    return followEvents(this.#view, this.#open.keys, this.#open.generation, position);
  }
}
