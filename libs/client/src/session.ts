import { CallOrder } from '@shellfleet/concurrency';
import {
  type Result,
  type SessionEvent,
  type SessionInfo,
  type SessionSpec,
  ShellfleetError,
} from '@shellfleet/protocol';
import { Command, type FollowOptions } from './command.ts';
import type { Files } from './files/files.ts';
import { throwUnlessDone } from './files/run-operation.ts';
import { SessionFiles } from './files/session-files.ts';
import { readSessionInfo } from './read/session-info.ts';
import { openResult } from './results/read-result.ts';
import { streamStdin } from './stdin/stream-stdin.ts';
import { followEvents } from './stream/session-events.ts';
import { parseCursor } from './stream/stream-reader.ts';
import { closeSession } from './submit/close-session.ts';
import type { OpenSession } from './submit/open-session.ts';
import { parseCommand, type RunOptions } from './submit/parse-command.ts';
import { sendEntry } from './submit/send-entry.ts';
import { type AttachOptions, openTerminal } from './terminal/open-terminal.ts';
import type { Terminal } from './terminal/terminal.ts';
import type { FleetView } from './view.ts';

/**
 * A persistent shell: its commands run one at a time, in the order in which they were accepted, and share directory,
 * variables and functions. A closed session stays closed; `fleet.session(id)` then opens the next one of its id. `await
 * using` closes the session at the end of the block; use `const` for one that others use, or that is to outlive the
 * block.
 */
export class Session implements AsyncDisposable {
  /** Id of the session, which the caller chose. */
  readonly id: string;
  /** @internal Whether this object's call opened the session. */
  readonly isNew: boolean;
  /** File operations in the sandbox. */
  readonly files: Files;
  readonly #view: FleetView;
  readonly #open: OpenSession;
  readonly #order = new CallOrder();
  /**
   * Renews the heartbeat of a session that this object drives, until its disposal. Absent if this object drives none.
   */
  readonly #driving: Disposable | undefined;

  /** @internal */
  constructor(view: FleetView, open: OpenSession, driving?: Disposable) {
    this.#view = view;
    this.#open = open;
    this.#driving = driving;
    this.id = open.id;
    this.isNew = open.created;
    this.files = new SessionFiles(view, open, this.#order);
  }

  /** Spec of the session, with its defaults and secrets. Throws SEAL_KEY_UNKNOWN if this process cannot open it. */
  get spec(): SessionSpec {
    return this.#open.spec;
  }

  /**
   * Runs a command and returns its Result, also when the command fails. Rejects as `submit`, and with the signal's
   * reason.
   */
  async run(script: string, options: RunOptions = {}): Promise<Result> {
    const command = await this.submit(script, options);
    return command.result(options.signal === undefined ? {} : { signal: options.signal });
  }

  /**
   * Submits a command and resolves when it is accepted. Commands are accepted in the order of the calls, awaited or
   * not.
   *
   * Rejects with COMMAND_INVALID for an invalid script or options, SESSION_CLOSED, QUOTA_EXCEEDED above 100,000 waiting
   * commands or 256 MiB of them in the session, or 200,000 of this Fleet, or at a quota of the tenant,
   * IDEMPOTENCY_CONFLICT, DURABLE_UNSUPPORTED, INTERCEPTOR_FAILED, and QUEUE_UNAVAILABLE when Redis did not reply: then
   * the same `idempotencyKey` makes it safe to submit again.
   */
  async submit(script: string, options: RunOptions = {}): Promise<Command> {
    options.signal?.throwIfAborted();
    const { payload, stream, options: parsed } = parseCommand(script, options, this.#open.bounds);
    const { pending, deduplicated } = await this.#order.run(() =>
      sendEntry(this.#view, this.#open, payload, {
        durable: parsed.durable,
        retry: parsed.retry,
        ...(parsed.idempotencyKey === undefined ? {} : { idempotencyKey: parsed.idempotencyKey }),
        ...(parsed.startDeadlineMs === undefined ? {} : { startDeadlineMs: parsed.startDeadlineMs }),
      }),
    );
    // A deduplicated command already has the stdin of its first submit.
    const streams = stream !== undefined && !deduplicated;
    return new Command(this.#view, pending, {
      deduplicated,
      streaming: streams ? streamStdin(this.#view, pending.keys, pending.entryId, stream) : undefined,
      foreign: deduplicated && pending.resubmit === undefined,
      onOutput: options.onOutput,
      attached: parsed.attachReader
        ? // A command that was submitted before is throttled to its own reader, if it has one.
          { reportAfterBytes: deduplicated ? Number.POSITIVE_INFINITY : this.#open.bounds.output.streamBytes / 4 }
        : undefined,
    });
  }

  /** Opens a terminal in the sandbox. Rejects with COMMAND_INVALID, SESSION_CLOSED, SESSION_LOST, HOST_UNREACHABLE. */
  attach(options: AttachOptions = {}): Promise<Terminal> {
    return openTerminal(this.#view, this.#open, this.#order, options);
  }

  /** Replaces the shell, in order with the commands. Rejects as `submit`, and with RESTART_DENIED. */
  async restart(): Promise<void> {
    const { pending } = await this.#order.run(() => sendEntry(this.#view, this.#open, { type: 'restart' }));
    const wire = openResult(this.#view.sealer, this.#open.keys, pending.entryId, await pending.result());
    if (wire.outcome === 'denial') {
      const { reason, stderr } = wire;
      const message = `Session ${this.id} was not restarted. ${stderr.trimEnd()}`;
      throw new ShellfleetError('RESTART_DENIED', message, { reason });
    }
    throwUnlessDone(wire, `the restart of session ${this.id}`);
  }

  /**
   * Ends all commands as cancellations, and frees sandbox and slot. Resolves when that is done, or at once if the host
   * is unreachable.
   */
  async close(): Promise<void> {
    await closeSession(this.#view, this.#open.keys, this.#open.generation);
    this.#driving?.[Symbol.dispose]();
  }

  /**
   * Returns the current state. `background` is known only if the host replies within 1 s. Rejects with
   * SESSION_NOT_FOUND.
   */
  info(): Promise<SessionInfo> {
    return readSessionInfo(this.#view, this.#open.keys);
  }

  /** Yields every event, live, from the beginning or after the event `after`, until the session is closed. */
  events(options: FollowOptions = {}): AsyncGenerator<SessionEvent> {
    const position = { ...options, after: parseCursor(options.after) };
    return followEvents(this.#view, this.#open.keys, this.#open.generation, position);
  }

  /** Closes the session, as `close` does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
