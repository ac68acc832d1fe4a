import {
  type AuditChainState,
  readAuditChains,
  readAuditHeads,
  readAuditPlaces,
  readRecord,
  type SealedAuditRecords,
} from '@shellfleet/mailbox';
import type { FleetDemand } from '@shellfleet/placement';
import {
  type AppliedConfiguration,
  type AuditHead,
  type FleetConfigurationInput,
  type FleetEvent,
  type HostImage,
  type HostInfo,
  parseCommandId,
  type Result,
  type SessionInfo,
  type SessionSpec,
  ShellfleetError,
} from '@shellfleet/protocol';
import { readFleetConfiguration } from '@shellfleet/redis';
import { Approvals } from './approvals/approvals.ts';
import { Batch, type Tasks } from './batch/batch.ts';
import type { BatchOptions } from './batch/batch-options.ts';
import { Command } from './command.ts';
import { type ConnectOptions, resolveSettings } from './connect-settings.ts';
import { DetachedBatches } from './detached/detached-batches.ts';
import { type ApplyOptions, applyConfiguration } from './hosts/apply-configuration.ts';
import { cordonHost, uncordonHost } from './hosts/cordon-host.ts';
import { type DrainOptions, drainHost } from './hosts/drain-host.ts';
import {
  listHostImages,
  type PruneImagesOptions,
  type PullImageOptions,
  pruneHostImages,
  pullHostImage,
} from './hosts/host-images.ts';
import { type HostLogLine, type HostLogOptions, readHostLog } from './hosts/host-log.ts';
import { listHosts } from './hosts/list-hosts.ts';
import { removeHost } from './hosts/remove-host.ts';
import { ApiKeys } from './keys/api-keys.ts';
import { readDemandOf } from './read/demand.ts';
import { type FleetEventOptions, followFleetEvents } from './read/fleet-events.ts';
import { type FleetLoad, readFleetLoad } from './read/fleet-load.ts';
import { listSessions, type SessionFilter } from './read/list-sessions.ts';
import { type ReadAuditOptions, readStoredAudit } from './read/read-audit.ts';
import { readTenants, type TenantInfo } from './read/read-tenants.ts';
import { resultExpired } from './results/read-result.ts';
import { runOneShot } from './run-one-shot.ts';
import { Session } from './session.ts';
import { attachSession, openSession, type SessionOptions } from './submit/open-session.ts';
import { checkCommand, type RunOptions } from './submit/parse-command.ts';
import { purgeSession } from './submit/purge-session.ts';
import { Tools } from './tools/tools.ts';
import { type FleetView, openView } from './view.ts';

/**
 * One tenant of a fleet. All fleets of this process that name the same Redis and user share at most five connections
 * and their timers, so a thousand are cheap. Calls that reach Redis reject with QUEUE_UNAVAILABLE when it does not
 * reply within 2 s.
 *
 * ```ts
 * await using fleet = await Fleet.connect();
 * const session = await fleet.session('build');
 * const { stdout } = await session.run('uname -a');
 * ```
 */
export class Fleet implements AsyncDisposable {
  readonly #view: FleetView;
  /** Functions that hosts offer. Each call runs in a separate process. */
  readonly tools: Tools;
  /** The questions of this tenant, and their answers. */
  readonly approvals: Approvals;
  /** Batches that workers of the fleet drive. */
  readonly batches: DetachedBatches;
  /** The API keys of all tenants, by which programs use the fleet over HTTP and MCP. They are for operators. */
  readonly keys: ApiKeys;

  private constructor(view: FleetView) {
    this.#view = view;
    this.tools = new Tools(view);
    this.approvals = new Approvals(view);
    this.batches = new DetachedBatches(view);
    this.keys = new ApiKeys(view);
  }

  /**
   * Connects to the fleet that the options name, else the `SHELLFLEET_…` variables, else the fleet that `up` started
   * for this user. Close it when it is no longer used. Rejects with COMMAND_INVALID for invalid options,
   * QUEUE_UNAVAILABLE when there is no fleet or Redis cannot be reached, and REDIS_UNSUITABLE when Redis is too old, a
   * replica, or may evict keys.
   */
  static async connect(options: ConnectOptions = {}): Promise<Fleet> {
    return new Fleet(await openView(await resolveSettings(options, process.env)));
  }

  /**
   * Opens a session, or attaches to the open one of this id. Resolves when it is recorded, without waiting for a host:
   * the session needs a host and a slot only from its first command on. Without a spec, an open session of any spec is
   * returned. Rejects with SESSION_SPEC_INVALID for an invalid spec or id, SESSION_CONFLICT when the open session has
   * another spec, and SESSION_CLOSED when an earlier session of this id is still closing after 60 s.
   */
  async session(id: string, spec?: SessionSpec, options: SessionOptions = {}): Promise<Session> {
    const opened = await openSession(this.#view, id, spec, options);
    return new Session(this.#view, opened, opened.driven ? this.#view.driven.drive(opened.keys) : undefined);
  }

  /** Returns the newest session of this id, open or closed. Returns undefined if there is none, and creates none. */
  async attach(id: string): Promise<Session | undefined> {
    const known = await attachSession(this.#view, id);
    return known === undefined ? undefined : new Session(this.#view, known);
  }

  /**
   * Yields this tenant's open sessions, in no particular order. A session that changes may show its old or its new
   * state. With `{ all: true }` or `{ state: 'closed' }` it includes closed sessions whose output can be read. Rejects
   * with COMMAND_INVALID for an invalid filter.
   */
  sessions(filter: SessionFilter = {}): AsyncGenerator<SessionInfo> {
    return listSessions(this.#view, filter);
  }

  /**
   * Runs one command in a separate session, which is closed afterwards. With an `idempotencyKey`, a second call with
   * the same script and options, from any process, resolves with the Result of the first. Rejects as `session` and
   * `Session.run`; an invalid command opens no session.
   */
  async run(script: string, options: RunOptions & { spec?: SessionSpec | undefined } = {}): Promise<Result> {
    const { spec, ...runOptions } = options;
    options.signal?.throwIfAborted();
    checkCommand(script, runOptions);
    return runOneShot(this.#view, script, runOptions, spec);
  }

  /**
   * Finds a command by its id, for the fleet's retention after its end. Rejects with COMMAND_INVALID or RESULT_EXPIRED.
   */
  async command(commandId: string): Promise<Command> {
    const ids = parseCommandId(String(commandId).slice(0, 512));
    if (ids === undefined) {
      const message = 'is not a command id (<sessionId>.<ULID>)';
      throw new ShellfleetError('COMMAND_INVALID', `${JSON.stringify(String(commandId).slice(0, 64))} ${message}.`, {
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

  /**
   * Runs tasks, each in a separate session. `tasks` may be a generator function. Results come in the order of the
   * tasks' ends. Throws COMMAND_INVALID.
   */
  batch(tasks: Tasks, options: BatchOptions = {}): Batch {
    return new Batch(this.#view, tasks, options);
  }

  /**
   * Yields what happens from now on: hosts come and go and are drained or cordoned; sessions open, are lost and close;
   * commands end; people are asked and answer. A reader has one connection of its own, and a fleet that nobody reads
   * does nothing for it. It is for operators. Throws REDIS_UNSUITABLE if the user of Redis may not subscribe to feeds.
   */
  events(options: FleetEventOptions = {}): AsyncGenerator<FleetEvent> {
    return followFleetEvents(this.#view, options);
  }

  /** Lists the registered hosts of the fleet, with their last heartbeats. */
  hosts(): Promise<HostInfo[]> {
    return listHosts(this.#view);
  }

  /**
   * Reads how many sessions of each tenant hold a slot or wait for one, and why they wait, beside the hosts. It is for
   * operators, because it counts the sessions of all tenants.
   */
  load(): Promise<FleetLoad> {
    return readFleetLoad(this.#view);
  }

  /**
   * Reads what the sessions of all tenants hold and wait for, as `/scale` of a worker shows it to an autoscaler.
   * Resolves with undefined while no host has counted what waits. This call is for operators.
   */
  demand(): Promise<FleetDemand | undefined> {
    return readDemandOf(this.#view);
  }

  /**
   * Lists the tenants that are configured, have sessions or used anything, with what they use and their quotas. Hosts
   * count the use. It is for operators, because it lists all tenants.
   */
  tenants(): Promise<TenantInfo[]> {
    return readTenants(this.#view);
  }

  /**
   * Returns the configuration of the fleet, or undefined if none was applied. Rejects with COMMAND_INVALID for one that
   * this version cannot use.
   */
  configuration(): Promise<AppliedConfiguration | undefined> {
    return readFleetConfiguration(this.#view.redis, this.#view.fleet);
  }

  /**
   * Replaces the configuration of the fleet, and resolves with its revision. Hosts read it within seconds. Rejects with
   * COMMAND_INVALID for an invalid one, RULES_INVALID for invalid rules or examples, and QUEUE_UNAVAILABLE also when
   * the user of Redis may not write it.
   */
  async applyConfiguration(configuration: FleetConfigurationInput, options: ApplyOptions = {}): Promise<number> {
    return applyConfiguration(this.#view, configuration, options);
  }

  /**
   * Lists every host that ever kept an audit, with the id of its state directory. Hosts of one machine may share a
   * state directory.
   */
  async auditPlaces(): Promise<{ namespace: string; host: string; stateDirectoryId: string }[]> {
    const { redis, namespace } = this.#view;
    const places = await readAuditPlaces(redis, namespace);
    return [...places].map(([host, stateDirectoryId]) => ({ namespace, host, stateDirectoryId }));
  }

  /**
   * Returns the last records of a host's audit, one per tenant, at most a minute old. Empty for a host of another
   * namespace.
   */
  async auditHeads(host: { id: string; namespace: string }): Promise<Record<string, AuditHead>> {
    const { redis, namespace } = this.#view;
    if (host.namespace !== namespace) return {};
    return Object.fromEntries(await readAuditHeads(redis, namespace, host.id));
  }

  /** Returns the chains of hosts whose audit is in Redis, and marks of what was removed of them. */
  async auditChains(): Promise<{ namespace: string; chains: AuditChainState[]; streamMark: string }> {
    const { redis, namespace } = this.#view;
    return { namespace, ...(await readAuditChains(redis, namespace)) };
  }

  /**
   * Reads the records of hosts whose audit is in Redis, sealed, from the entry with this id. With `follow`, also those
   * that come later, until the signal is aborted.
   */
  auditRecords(options: ReadAuditOptions = {}): AsyncGenerator<SealedAuditRecords> {
    return readStoredAudit(this.#view, options);
  }

  /**
   * Removes the containers of a session that hosts keep (`keepOnFailure`), and returns their number. Rejects with
   * HOST_UNREACHABLE.
   */
  purge(id: string): Promise<number> {
    return purgeSession(this.#view, this.#view.keysOf(id));
  }

  /**
   * Asks a host to take no new session and no new tool call (the host is then `draining`). Sessions with a living shell
   * stay until they end; other sessions go to other hosts. The request also holds for later processes of the host,
   * until `undo`, or until `forMs` have passed. Rejects with COMMAND_INVALID for an unknown host.
   */
  drainHost(id: string, options: DrainOptions = {}): Promise<void> {
    return drainHost(this.#view, id, options);
  }

  /**
   * Asks a host to take no session that it does not have already. Its sessions and tool calls go on as before. The
   * request also holds for a host that is down and for later processes of the host, until `uncordonHost`. Rejects with
   * COMMAND_INVALID for an unknown host.
   */
  cordonHost(id: string): Promise<void> {
    return cordonHost(this.#view, id);
  }

  /** Withdraws `cordonHost`. Rejects with COMMAND_INVALID for an unknown host. */
  uncordonHost(id: string): Promise<void> {
    return uncordonHost(this.#view, id);
  }

  /**
   * Removes a host from the list of `hosts()`, until it is up again. Rejects with COMMAND_INVALID while the host is up
   * or still owns a session of any tenant, and names these sessions.
   */
  removeHost(id: string): Promise<void> {
    return removeHost(this.#view, id);
  }

  /**
   * Yields the last lines that a host's worker has logged, as far as it keeps them (about 1 MiB); with `follow` also
   * later ones. It is for operators, because a log has ids of all tenants. Rejects with COMMAND_INVALID for an unknown
   * host, and HOST_UNREACHABLE for one that is down.
   */
  hostLog(host: string, options: HostLogOptions = {}): AsyncGenerator<HostLogLine> {
    return readHostLog(this.#view, host, options);
  }

  /** Lists the images of a host that sessions may name. Rejects with COMMAND_INVALID for an unknown host. */
  hostImages(host: string): Promise<HostImage[]> {
    return listHostImages(this.#view, host);
  }

  /**
   * Lets a host pull an image, waits for it, and returns its digest. Rejects with IMAGE_UNAVAILABLE if the host cannot
   * have it.
   */
  pullImage(host: string, image: string, options: PullImageOptions = {}): Promise<string> {
    return pullHostImage(this.#view, host, image, options);
  }

  /**
   * Removes the images of a host that it pulled, and that are neither in use nor pinned. Returns what was removed. With
   * `dryRun` nothing is removed.
   */
  pruneImages(host: string, options: PruneImagesOptions = {}): Promise<HostImage[]> {
    return pruneHostImages(this.#view, host, options);
  }

  /**
   * Ends this fleet's waits with QUEUE_UNAVAILABLE. Accepted commands continue. The last fleet closes the connection.
   */
  close(): Promise<void> {
    return this.#view.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
