import { randomBytes } from 'node:crypto';
import { SharedRounds, SharedTimer } from '@shellfleet/concurrency';
import { RENEW_DRIVER_EVERY_MS } from '@shellfleet/mailbox';
import { QueuedSessions } from '@shellfleet/placement';
import {
  type FleetKeys,
  fleetKeys,
  isShellfleetError,
  parseKeyspace,
  ShellfleetError,
  toKeyspace,
} from '@shellfleet/protocol';
import {
  checkRedis,
  connectRedis,
  isRestoring,
  joinFleet,
  type RedisHistory,
  readRetention,
  restoreFleet,
} from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { monotonicFactory } from 'ulid';
import { SendWindow } from '../queue/send-window.ts';
import { ToolsQueue } from '../queue/tools-queue.ts';
import { LOOK_AGAIN_MS } from '../results/pending-results.ts';
import { warn } from '../warn.ts';
import { DurabilityOfRedis } from './durability.ts';
import { WAKE_AGAIN_MS } from './feeds.ts';
import { Inboxes, type NoticeReceiver, Subscriber } from './subscriber.ts';

/**
 * Most calls in flight on the main connection. Even a slow Redis replies to this number well within a call's deadline.
 */
const CALLS_IN_FLIGHT = 1_000;
/** Most session jobs that are added at once, in each namespace. */
const JOBS_IN_FLIGHT = 200;

export interface ConnectionUser extends NoticeReceiver {
  tenant: string;
  /** Called when Redis is back after it was down. */
  onReconnected(): void;
  /**
   * Called when the namespace has another fleet, or keys of another version, so that no wait of this view can succeed.
   */
  onOtherFleet(error: ShellfleetError): void;
}

/**
 * Interval at which retention and fleet are read again: workers may restart with another retention, and Redis may lose
 * data without a reconnection.
 */
const LOOK_AGAIN_EVERY_MS = 60_000;

/** The part of a connection that the views of one fleet share. */
export interface NamespaceLink {
  readonly fleet: FleetKeys;
  readonly sessions: QueuedSessions;
  readonly tools: ToolsQueue;
  /** The views of each tenant. */
  readonly users: Map<string, Set<ConnectionUser>>;
}

/** What Redis has of a fleet when a view enters it. */
export interface Entered {
  keyspace: string;
  /** Whether Redis was being restored (`isRestoring`). */
  wasRestoring: boolean;
}

/** The main Redis connection, and on first use a subscriber for inboxes and feeds. */
export class Connection {
  readonly id: string;
  readonly redis: Redis;
  readonly history: RedisHistory;
  readonly nextId: () => string;
  readonly window = new SendWindow(CALLS_IN_FLIGHT);
  readonly durability: DurabilityOfRedis;
  /** The timers of all views. A view has none of its own. */
  readonly timers = {
    results: new SharedTimer(LOOK_AGAIN_MS),
    feeds: new SharedTimer(WAKE_AGAIN_MS),
    driven: new SharedTimer(RENEW_DRIVER_EVERY_MS),
  };
  readonly subscriber: Subscriber;
  /** Opens a connection for subscriptions with many messages. Its user closes it. */
  readonly openSubscriber: () => Redis;
  readonly #inboxes: Inboxes;
  /** Shared parts, by keyspace. */
  readonly #namespaces = new Map<string, NamespaceLink>();
  /** Last known identity of each namespace's fleet. */
  readonly #fleetIds = new Map<string, string>();
  readonly #redisUrl: string;
  /** Readings of what a view needs, by namespace. Views that open at the same time share one. */
  readonly #entering = new SharedRounds((namespace) => this.#enter(namespace));
  #wasEntered = false;
  readonly #lookingAgain: NodeJS.Timeout;

  /** Connects. Throws QUEUE_UNAVAILABLE when Redis is out of reach, REDIS_UNSUITABLE when it would lose commands. */
  static async open(redisUrl: string): Promise<Connection> {
    const nextId = createIds();
    const id = nextId();
    const connected = await connectRedis(redisUrl, 'producer', `shellfleet-producer-${id}`);
    const { redis, history, duplicate, clockProblem } = connected;
    void clockProblem.then((problem) => problem !== undefined && warn(problem));
    return new Connection(redisUrl, id, nextId, redis, history, duplicate);
  }

  private constructor(
    redisUrl: string,
    id: string,
    nextId: () => string,
    redis: Redis,
    history: RedisHistory,
    duplicate: (role: 'subscriber', name: string) => Redis,
  ) {
    this.#redisUrl = redisUrl;
    this.id = id;
    this.nextId = nextId;
    this.redis = redis;
    this.history = history;
    this.durability = new DurabilityOfRedis(redis, history);
    this.openSubscriber = () => duplicate('subscriber', `shellfleet-events-${id}`);
    this.subscriber = new Subscriber(() => duplicate('subscriber', `shellfleet-feeds-${id}`));
    this.#inboxes = new Inboxes(this.subscriber, id);
    // Each queue of each namespace adds a listener, so there is no limit.
    redis.setMaxListeners(0);
    redis.on('ready', () => this.#reconnected());
    this.#lookingAgain = setInterval(() => void this.#lookAgain(), LOOK_AGAIN_EVERY_MS).unref();
  }

  /**
   * Reads what a view needs of Redis, in one round trip if this process uses the fleet already. Throws
   * QUEUE_UNAVAILABLE, and REDIS_UNSUITABLE when Redis has become unsuitable since the connection was opened.
   */
  enter(namespace: string): Promise<Entered> {
    return this.#entering.run(namespace);
  }

  async #enter(namespace: string): Promise<Entered> {
    const checking = this.#wasEntered ? checkRedis(this.redis, this.#redisUrl) : undefined;
    this.#wasEntered = true;
    const reading = this.#read(namespace);
    reading.catch(() => {});
    await checking;
    return reading;
  }

  async #read(namespace: string): Promise<Entered> {
    const known = this.#fleetIds.get(namespace);
    const finding = this.#findKeyspace(namespace);
    const expected = known === undefined ? await finding : toKeyspace(namespace, known);
    const readAll = (keyspace: string) =>
      Promise.all([isRestoring(this.redis, keyspace), readRetention(this.redis, keyspace), this.durability.read()]);
    const [keyspace, [wasRestoring]] = await Promise.all([finding, readAll(expected)]);
    if (keyspace === expected) return { keyspace, wasRestoring };
    const [isRestoringNow] = await readAll(keyspace);
    return { keyspace, wasRestoring: isRestoringNow };
  }

  /**
   * Returns a fleet's keyspace. If Redis has no fleet, waits for a host to record one, then uses the last known fleet
   * or a new one.
   */
  async #findKeyspace(namespace: string): Promise<string> {
    const known = this.#fleetIds.get(namespace);
    const declared = await (known === undefined
      ? joinFleet(this.redis, namespace, 'producer')
      : restoreFleet(this.redis, toKeyspace(namespace, known)).catch((error: unknown) => {
          if (isShellfleetError(error) && error.code === 'PROTOCOL_MISMATCH') this.#end(namespace, known, error);
          throw error;
        }));
    this.#fleetIds.set(namespace, declared);
    if (known !== undefined && known !== declared) this.#end(namespace, known, otherFleet(namespace, known, declared));
    return toKeyspace(namespace, declared);
  }

  join(namespace: string, user: ConnectionUser): NamespaceLink {
    const link = this.#namespaces.get(namespace) ?? this.#createLink(namespace);
    const users = link.users.get(user.tenant) ?? new Set();
    link.users.set(user.tenant, users.add(user));
    return link;
  }

  /** Removes a view. For the last view of a fleet, resolves when the session jobs that it is adding are stored. */
  async leave(namespace: string, user: ConnectionUser): Promise<void> {
    const link = this.#namespaces.get(namespace);
    const users = link?.users.get(user.tenant);
    if (link === undefined || !users?.delete(user)) return;
    if (users.size === 0) {
      link.users.delete(user.tenant);
      this.#inboxes.remove(namespace, user.tenant);
      link.tools.forget(user.tenant);
    }
    if (link.users.size > 0) return;
    this.#namespaces.delete(namespace);
    await link.sessions.settled();
  }

  /** Opens the inbox of a tenant. When it resolves, the inbox receives every later message. */
  openInbox(namespace: string, tenant: string): Promise<void> {
    const users = () => this.#namespaces.get(namespace)?.users.get(tenant) ?? [];
    return this.#inboxes.open(namespace, tenant, {
      onEnded: (notice) => {
        if (notice.tenant === tenant) for (const user of users()) user.onEnded(notice);
      },
      onReply: (id, sealed) => {
        for (const user of users()) user.onReply(id, sealed);
      },
      onGap: () => {
        for (const user of users()) user.onGap();
      },
    });
  }

  async close(): Promise<void> {
    clearInterval(this.#lookingAgain);
    this.subscriber.close();
    await this.redis.quit().catch(() => this.redis.disconnect());
  }

  #createLink(namespace: string): NamespaceLink {
    const fleet = fleetKeys(namespace);
    const sessions = new QueuedSessions(this.redis, fleet, new SendWindow(JOBS_IN_FLIGHT));
    const link: NamespaceLink = { fleet, sessions, tools: new ToolsQueue(this.redis, fleet), users: new Map() };
    this.#namespaces.set(namespace, link);
    return link;
  }

  *#usersOf({ users }: NamespaceLink): Iterable<ConnectionUser> {
    for (const ofTenant of users.values()) yield* ofTenant;
  }

  /** Reads the retentions. While Redis is down, the values of the last reading are used. */
  #readRetentions(): void {
    for (const namespace of this.#namespaces.keys()) void readRetention(this.redis, namespace).catch(() => {});
  }

  #reconnected(): void {
    void this.#lookAgain();
    void this.durability.refresh().catch(() => {});
    for (const link of this.#namespaces.values()) for (const user of this.#usersOf(link)) user.onReconnected();
  }

  /** Repeats the readings of the start, because another Redis may have replaced the first one. */
  async #lookAgain(): Promise<void> {
    const namespaces = new Set([...this.#namespaces.keys()].map((keyspace) => parseKeyspace(keyspace).namespace));
    // A client without write permission cannot declare the fleet. Then a host declares it.
    await Promise.allSettled([...namespaces].map((namespace) => this.#findKeyspace(namespace)));
    this.#readRetentions();
  }

  #end(namespace: string, known: string, error: ShellfleetError): void {
    const link = this.#namespaces.get(toKeyspace(namespace, known));
    if (link !== undefined) for (const user of this.#usersOf(link)) user.onOtherFleet(error);
  }
}

function otherFleet(namespace: string, known: string, declared: string): ShellfleetError {
  return new ShellfleetError(
    'FLEET_CONFLICT',
    `This process used the fleet ${known}, and its Redis has the fleet ${declared} in the namespace ${namespace} now: it was replaced by another, or emptied while no host of ${known} was up. Connect anew to use ${declared}; what ${known} accepted is found where its Redis is.`,
    { namespace, fleetId: known, declared },
  );
}

/** Makes ULIDs that rise in the order of the calls. */
export function createIds(): () => string {
  return monotonicFactory(pooledRandom());
}

/** Returns random fractions for `ulid`, from pools of 1,024 bytes: a system call for each would be expensive. */
function pooledRandom(): () => number {
  let pool = Buffer.alloc(0);
  let used = 0;
  return () => {
    if (used === pool.length) {
      pool = randomBytes(1_024);
      used = 0;
    }
    return pool.readUInt8(used++) / 256;
  };
}
