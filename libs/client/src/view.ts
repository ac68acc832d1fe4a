import { KeyedCallOrder } from '@shellfleet/concurrency';
import { newSessionJob, type QueuedSessions, toPlacement } from '@shellfleet/placement';
import { type Caller, type FleetKeys, type SessionKeys, ShellfleetError, sessionKeys } from '@shellfleet/protocol';
import { retentionOf } from '@shellfleet/redis';
import { createKeylessSealer, createSealer, createSigner, type Sealer } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { ConnectSettings } from './connect-settings.ts';
import type { Connection, ConnectionUser, Entered, NamespaceLink } from './connection/connection.ts';
import { DrivenSessions } from './connection/driven-sessions.ts';
import type { DurabilityOfRedis } from './connection/durability.ts';
import { Feeds } from './connection/feeds.ts';
import { acquireConnection, type ConnectionLease } from './connection/shared-connections.ts';
import { type SendWindow, SubmitBudget } from './queue/send-window.ts';
import type { ToolsQueue } from './queue/tools-queue.ts';
import { PendingReplies } from './results/pending-replies.ts';
import { PendingResults } from './results/pending-results.ts';
import { Interceptors } from './submit/interceptors.ts';
import { LostSessions } from './submit/lost-sessions.ts';
import type { OpenSession } from './submit/open-session.ts';

/** The fleet that a view uses, and its tenant. */
export interface ViewSettings
  extends Pick<ConnectSettings, 'redisUrl' | 'namespace' | 'place' | 'tenant' | 'interceptors' | 'caller'> {
  /** Throws if this process may use the fleet no longer, such as after the loss of a lease. Default: it always may. */
  requireRight?(): void;
}

// VIEW-1. Pending results, requests and subscriptions belong to a view. Closing the view ends its own waits only.
// VIEW-2. A closed view sends nothing more, though its connection may live on. Nor does a view that has lost its right.

/** One tenant of one fleet, as this process uses it. Its connection may be shared with other views. */
export class FleetView {
  /** Identifies this view in writes to an open stdin, whose numbers rise per view. */
  readonly id: string;
  readonly inboxId: string;
  readonly namespace: string;
  readonly tenant: string;
  /** Address of the fleet, for messages. */
  readonly place: string;
  readonly sealer: Sealer;
  /** Who uses this view, if its process said so. */
  readonly caller: Caller | undefined;
  readonly durability: DurabilityOfRedis;
  readonly interceptors: Interceptors;
  readonly fleet: FleetKeys;
  readonly sessions: QueuedSessions;
  readonly tools: ToolsQueue;
  readonly pending: PendingResults;
  readonly budget = new SubmitBudget();
  readonly lost: LostSessions;
  readonly replies = new PendingReplies();
  readonly driven: DrivenSessions;
  readonly feeds: Feeds;
  readonly window: SendWindow;
  readonly inputOrder = new KeyedCallOrder();
  /** Makes ULIDs that rise in the order of the calls. */
  readonly nextId: () => string;
  readonly #connection: Connection;
  readonly #lease: ConnectionLease;
  readonly #user: ConnectionUser;
  readonly #requireRight: () => void;
  #inputNumber = 0;
  #closed?: ShellfleetError;
  #left = false;

  constructor(settings: ViewSettings, { keyspace, wasRestoring }: Entered, sealer: Sealer, lease: ConnectionLease) {
    const { connection } = lease;
    const { history, timers } = connection;
    this.id = connection.nextId();
    this.inboxId = connection.id;
    this.namespace = keyspace;
    this.tenant = settings.tenant;
    this.place = settings.place;
    this.sealer = sealer;
    this.caller = settings.caller;
    this.durability = connection.durability;
    this.interceptors = new Interceptors(settings.interceptors);
    this.pending = new PendingResults(connection.redis, history, timers.results);
    this.lost = new LostSessions({ redis: () => this.redis, namespace: keyspace, history, wasRestoring });
    this.feeds = new Feeds(connection.subscriber, timers.feeds);
    this.driven = new DrivenSessions(connection.redis, timers.driven);
    this.window = connection.window;
    this.nextId = connection.nextId;
    this.#connection = connection;
    this.#lease = lease;
    this.#requireRight = settings.requireRight ?? (() => {});
    this.#user = {
      tenant: settings.tenant,
      onEnded: (notice) => void this.pending.notice(notice),
      onReply: (requestId, sealed) => this.replies.settle(requestId, sealed),
      onGap: () => {
        this.replies.requestAgain();
        void this.pending.lookAfterGap().catch(() => {});
      },
      onReconnected: () => {
        void this.pending.lookAfterGap().catch(() => {});
        this.feeds.wakeAll();
        this.driven.renew();
      },
      onOtherFleet: (error) => this.#end(error),
    };
    const link: NamespaceLink = connection.join(keyspace, this.#user);
    this.fleet = link.fleet;
    this.sessions = link.sessions;
    this.tools = link.tools;
  }

  /**
   * The main connection. Throws QUEUE_UNAVAILABLE for a closed view, FLEET_CONFLICT for another fleet in Redis, and the
   * error of `requireRight`.
   */
  get redis(): Redis {
    if (this.#closed !== undefined) throw this.#closed;
    this.#requireRight();
    return this.#connection.redis;
  }

  /** Opens a connection for subscriptions. Its user closes it. */
  openSubscriber(): Redis {
    return this.#connection.openSubscriber();
  }

  /**
   * Opens the inbox. It is called before any request whose reply arrives as a notice; requests wait until the inbox is
   * open.
   */
  openInbox(): Promise<void> {
    return this.#connection.openInbox(this.namespace, this.tenant);
  }

  /** Adds a job for the session unless the session has one. */
  ensureJob({ keys, generation, spec, sealedWith }: OpenSession): Promise<void> {
    return this.sessions.ensureJob(newSessionJob(keys, generation, toPlacement(spec, sealedWith)));
  }

  /** Returns the next number for a call of this view on an open stdin. The numbers rise. */
  nextInputNumber(): number {
    return ++this.#inputNumber;
  }

  readonly keysOf = (sessionId: string): SessionKeys => sessionKeys(this.namespace, this.tenant, sessionId);

  /** Ends every wait of this view with QUEUE_UNAVAILABLE. The last view to be closed closes the connection. */
  async close(): Promise<void> {
    if (this.#left) return;
    this.#left = true;
    this.#end(closedHere());
    await this.#connection.leave(this.namespace, this.#user);
    await this.#lease.release();
  }

  #end(why: ShellfleetError): void {
    if (this.#closed !== undefined) return;
    this.#closed = why;
    this.feeds.close(why);
    this.driven.close();
    this.pending.close(why);
    this.replies.close(why);
  }
}

/** Connects a view by the settings of a client. */
export async function openView(settings: ConnectSettings): Promise<FleetView> {
  // Invalid keys are reported before any connection is made.
  const hasKey = settings.sealKeys.length > 0;
  if (hasKey) createSealer(settings.sealKeys);
  return connectView(settings, (redis, keyspace) => {
    const { signingKey } = settings;
    const signer = signingKey && createSigner(signingKey, () => retentionOf(redis, keyspace));
    return hasKey ? createSealer(settings.sealKeys, { signer }) : createKeylessSealer();
  });
}

/** Connects a view that uses the sealer which `toSealer` returns. */
export async function connectView(
  settings: ViewSettings,
  toSealer: (redis: Redis, keyspace: string) => Sealer,
): Promise<FleetView> {
  const lease = await acquireConnection(settings.redisUrl);
  try {
    const entered = await lease.connection.enter(settings.namespace);
    return new FleetView(settings, entered, toSealer(lease.connection.redis, entered.keyspace), lease);
  } catch (error) {
    await lease.release();
    throw error;
  }
}

function closedHere(): ShellfleetError {
  return new ShellfleetError(
    'QUEUE_UNAVAILABLE',
    'This Fleet was closed. Accepted commands go on; fleet.command(id) of a new one finds them.',
  );
}
