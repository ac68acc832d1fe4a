import { readRecord } from '@shellfleet/mailbox';
import {
  type HostInfo,
  parseCommandId,
  type Result,
  type SessionInfo,
  type SessionSpec,
  type SessionState,
  ShellfleetError,
} from '@shellfleet/protocol';
import { Batch } from './batch/batch.ts';
import type { BatchOptions, Task } from './batch/task.ts';
import { Command } from './command.ts';
import { type ConnectOptions, resolveSettings } from './connect-settings.ts';
import { listHosts } from './hosts/list-hosts.ts';
import { listSessions } from './read/list-sessions.ts';
import { resultExpired } from './results/read-result.ts';
import { Session } from './session.ts';
import { beginClose } from './submit/close-session.ts';
import { attachSession, openSession } from './submit/open-session.ts';
import { checkCommand, type RunOptions } from './submit/parse-command.ts';
import { Tools } from './tools/tools.ts';
import { openView, type View } from './view.ts';

/** A connection to a fleet: at most five connections to Redis, whatever the number of sessions and readers. */
export class Fleet implements AsyncDisposable {
  readonly #view: View;
  /** Functions that hosts offer. */
  readonly tools: Tools;

  private constructor(view: View) {
    this.#view = view;
    this.tools = new Tools(view);
  }

  /** Without options: SHELLFLEET_REDIS_URL and its like, else the fleet that `up` started for this user. */
  static async connect(options: ConnectOptions = {}): Promise<Fleet> {
    return new Fleet(await openView(await resolveSettings(options, process.env)));
  }

  /** Records the session, or attaches to the one that lives; waits for no host and takes no slot. */
  async session(id: string, spec?: SessionSpec): Promise<Session> {
    return new Session(this.#view, await openSession(this.#view, id, spec));
  }

  /** The newest life of a session, closed or not, without starting one; undefined when nothing is known of the id. */
  async attach(id: string): Promise<Session | undefined> {
    const known = await attachSession(this.#view, id);
    return known === undefined ? undefined : new Session(this.#view, known);
  }

  sessions(filter: { state?: SessionState } = {}): AsyncGenerator<SessionInfo> {
    return listSessions(this.#view, filter.state);
  }

  /** One-shot: in a fresh shell of its own, which is closed afterwards. */
  async run(script: string, options: RunOptions & { spec?: SessionSpec } = {}): Promise<Result> {
    const { spec, ...runOptions } = options;
    options.signal?.throwIfAborted();
    const id = `run-${this.#view.nextId()}`;
    const opened = await this.#openFor(id, script, runOptions, spec);
    try {
      return await new Session(this.#view, opened).run(script, runOptions);
    } finally {
      await beginClose(this.#view, opened.keys, opened.generation).catch(() => {});
    }
  }

  /** Finds a command again, from any process, while its record is kept. */
  async command(commandId: string): Promise<Command> {
    const ids = parseCommandId(String(commandId).slice(0, 512));
    if (ids === undefined) {
      const message = 'is not a command id (<sessionId>.<ULID>)';
      throw new ShellfleetError('COMMAND_INVALID', `The command id ${message}.`, {
        issues: [{ path: 'commandId', message }],
      });
    }
    const keys = this.#view.keysOf(ids.sessionId);
    const known = await readRecord(this.#view.redis, keys, ids.entryId);
    if (known === undefined) throw resultExpired(commandId);
    const pending = this.#view.pending.expect(keys, ids.entryId);
    pending.accepted = true;
    return new Command(this.#view, pending, { deduplicated: false, foreign: pending.resubmit === undefined });
  }

  /** Runs tasks as sessions of their own; results come as the tasks end. */
  batch(tasks: Iterable<Task> | AsyncIterable<Task>, options: BatchOptions = {}): Batch {
    return new Batch(this.#view, tasks, options);
  }

  hosts(): Promise<HostInfo[]> {
    return listHosts(this.#view);
  }

  /** Accepted commands go on; whoever waits here for a result is told so. */
  close(): Promise<void> {
    return this.#view.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** A script that is refused leaves no session behind. */
  async #openFor(id: string, script: string, options: RunOptions, spec: SessionSpec | undefined) {
    checkCommand(script, options);
    return openSession(this.#view, id, spec);
  }
}
