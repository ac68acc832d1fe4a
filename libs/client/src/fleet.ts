import { readAuditHeads, readAuditPlaces, readRecord } from '@shellfleet/mailbox';
import {
  type AuditHead,
  type HostInfo,
  parseCommandId,
  type Result,
  type SessionInfo,
  type SessionSpec,
  ShellfleetError,
} from '@shellfleet/protocol';
import { Approvals } from './approvals/approvals.ts';
import { Batch } from './batch/batch.ts';
import type { BatchOptions, Task } from './batch/task.ts';
import { Command } from './command.ts';
import { type ConnectOptions, resolveSettings } from './connect-settings.ts';
import { type DrainOptions, drainHost } from './hosts/drain-host.ts';
import { listHosts } from './hosts/list-hosts.ts';
import { removeHost } from './hosts/remove-host.ts';
import { listSessions, type SessionFilter } from './read/list-sessions.ts';
import { resultExpired } from './results/read-result.ts';
import { runOneShot } from './run-one-shot.ts';
import { Session } from './session.ts';
import { attachSession, openSession, type SessionOptions } from './submit/open-session.ts';
import { checkCommand, type RunOptions } from './submit/parse-command.ts';
import { purgeSession } from './submit/purge-session.ts';
import { Tools } from './tools/tools.ts';
import { type FleetView, openView } from './view.ts';

/**
 * One tenant of a fleet, over a connection that all fleets of this process share if they name the same Redis and user: at most five
 * connections to Redis, regardless of the number of fleets, sessions and readers.
 *
 * Calls that reach Redis reject with QUEUE_UNAVAILABLE when it does not answer within 2 s.
 *
 * ```ts
 * await using fleet = await Fleet.connect();
 * const session = await fleet.session('build');
 * const { stdout } = await session.run('uname -a');
 * ```
 */
export class Fleet implements AsyncDisposable {
  readonly #view: FleetView;
  /** Functions that hosts offer, each call in a process of its own. */
  readonly tools: Tools;
  /** The commands that wait for a person, and the answers to them. */
  readonly approvals: Approvals;

  private constructor(view: FleetView) {
    this.#view = view;
    this.tools = new Tools(view);
    this.approvals = new Approvals(view);
  }

  /**
   * Connects to the fleet that the options name, else the `SHELLFLEET_…` variables, else the fleet that `up` started for this user. Close it
   * when it is no longer used.
   *
   * Rejects with COMMAND_INVALID for options that are not valid, QUEUE_UNAVAILABLE when there is no fleet or Redis cannot be reached, and
   * REDIS_UNSUITABLE when Redis is too old, a replica, or may evict keys.
   */
  static async connect(options: ConnectOptions = {}): Promise<Fleet> {
    return new Fleet(await openView(await resolveSettings(options, process.env)));
  }

  /**
   * Opens a session, or attaches to the open one of this id. Resolves when it is recorded, without waiting for a host: the session needs a
   * host and a slot only from its first command on. Without a spec, an open session of any spec is returned.
   *
   * Rejects with SESSION_SPEC_INVALID for a spec or id that is not valid, SESSION_CONFLICT when the open session has another spec, and
   * SESSION_CLOSED when an earlier session of this id is still closing after 60 s.
   */
  async session(id: string, spec?: SessionSpec, options: SessionOptions = {}): Promise<Session> {
    const opened = await openSession(this.#view, id, spec, options);
    return new Session(this.#view, opened, opened.driven ? this.#view.driven.drive(opened.keys) : undefined);
  }

  /** Returns the newest session of this id, open or closed, and creates none. Undefined when there is none. */
  async attach(id: string): Promise<Session | undefined> {
    const known = await attachSession(this.#view, id);
    return known === undefined ? undefined : new Session(this.#view, known);
  }

  /**
   * The sessions of this tenant that are not closed, in no particular order. One that changes meanwhile may show its old or its new state.
   * With `{ all: true }` or `{ state: 'closed' }`, closed ones too, while their output can be read. Rejects with COMMAND_INVALID for a filter
   * that is not valid.
   */
  sessions(filter: SessionFilter = {}): AsyncGenerator<SessionInfo> {
    return listSessions(this.#view, filter);
  }

  /**
   * Runs one command in a session of its own, which is closed afterwards. With an `idempotencyKey`, the session is that of the key: a second
   * call with the same script and options, from any process, resolves with the Result of the first. Rejects as `session` and `Session.run` do; a
   * command that is not valid opens no session.
   */
  async run(script: string, options: RunOptions & { spec?: SessionSpec | undefined } = {}): Promise<Result> {
    const { spec, ...runOptions } = options;
    options.signal?.throwIfAborted();
    checkCommand(script, runOptions);
    return runOneShot(this.#view, script, runOptions, spec);
  }

  /** Finds a command by its id, from any process, while its record is kept (for the fleet's retention after its end, 24 hours by default). Rejects with COMMAND_INVALID or RESULT_EXPIRED. */
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

  /** Runs tasks, each in a session of its own. Results come in the order in which the tasks end. Throws COMMAND_INVALID for options that are not valid. */
  batch(tasks: Iterable<Task> | AsyncIterable<Task>, options: BatchOptions = {}): Batch {
    return new Batch(this.#view, tasks, options);
  }

  /** Every registered host of the fleet, with its last heartbeat. */
  hosts(): Promise<HostInfo[]> {
    return listHosts(this.#view);
  }

  /**
   * Every host that ever kept an audit, with the id of the state folder in which it is. Hosts with one state folder are on one machine.
   */
  async auditPlaces(): Promise<{ namespace: string; host: string; stateFolderId: string }[]> {
    const { redis, namespace } = this.#view;
    const places = await readAuditPlaces(redis, namespace);
    return [...places].map(([host, stateFolderId]) => ({ namespace, host, stateFolderId }));
  }

  /**
   * The last records of a host's audit, by tenant, as the host stored them in Redis last: every minute, and when it stopped. Empty for a host of
   * another namespace.
   */
  async auditHeads(host: { id: string; namespace: string }): Promise<Record<string, AuditHead>> {
    const { redis, namespace } = this.#view;
    if (host.namespace !== namespace) return {};
    return Object.fromEntries(await readAuditHeads(redis, namespace, host.id));
  }

  /**
   * Removes the containers of a session that hosts keep for a post-mortem (`keepOnFailure`). Returns how many there were. Rejects with
   * HOST_UNREACHABLE when some are still there after 10 s.
   */
  purge(id: string): Promise<number> {
    return purgeSession(this.#view, this.#view.keysOf(id));
  }

  /**
   * Asks a host to take no new session and no new tool call (its state is then `draining`). Sessions with a living shell stay until they end;
   * the others go to other hosts at once. The request also holds for later processes of the host, until `undo`, or until `forMs` have passed.
   * Rejects with COMMAND_INVALID for a host that the fleet does not have.
   */
  drainHost(id: string, options: DrainOptions = {}): Promise<void> {
    return drainHost(this.#view, id, options);
  }

  /**
   * Takes a host that is not up off the list of `hosts()`, until it is back. A host that ended in order with no session left is not listed anyway.
   * Rejects with COMMAND_INVALID for a host that is up, or that the fleet does not have.
   */
  removeHost(id: string): Promise<void> {
    return removeHost(this.#view, id);
  }

  /**
   * Ends every wait of this fleet with QUEUE_UNAVAILABLE; accepted commands go on. Other fleets that share its connection are not affected. The
   * last one closes the connection.
   */
  close(): Promise<void> {
    return this.#view.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
