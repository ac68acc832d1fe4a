import { randomBytes } from 'node:crypto';
import { QueuedSessions } from '@shellfleet/placement';
import {
  type FleetKeys,
  fleetKeys,
  isShellfleetError,
  parseKeyspace,
  ShellfleetError,
  toKeyspace,
} from '@shellfleet/protocol';
import { connectRedis, joinFleet, type RedisHistory, readRetention, restoreFleet } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { monotonicFactory } from 'ulid';
import { SendWindow } from '../queue/send-window.ts';
import { ToolsQueue } from '../queue/tools-queue.ts';
import { warn } from '../warn.ts';
import { Inboxes, type NoticeReceiver, Subscriber } from './subscriber.ts';

/** Calls that may be in flight on the main connection. Even a slow Redis replies to this many well within the deadline of a call. */
const CALLS_IN_FLIGHT = 1_000;
/** Session jobs that are added at once, in each namespace. */
const JOBS_IN_FLIGHT = 200;

/** The part of a view that its connection uses. */
export interface ConnectionUser extends NoticeReceiver {
  tenant: string;
  /** Redis is back after it was down. */
  onReconnected(): void;
  /** Redis has another fleet, or keys of another version, in the namespace now: nothing that this user waits for comes. */
  onOtherFleet(error: ShellfleetError): void;
}

/** Workers may have been started again with another retention, and Redis may have lost its data without a reconnection. */
const LOOK_AGAIN_EVERY_MS = 60_000;

/** The part of a connection that the views of one fleet share. */
export interface NamespaceLink {
  readonly fleet: FleetKeys;
  readonly sessions: QueuedSessions;
  readonly tools: ToolsQueue;
  readonly users: Set<ConnectionUser>;
}

/** Two Redis connections: the main one, and a subscriber for inboxes and feeds, which is made when it is needed. */
export class Connection {
  /** Names the inboxes of this process. */
  readonly id: string;
  readonly redis: Redis;
  readonly history: RedisHistory;
  readonly nextId: () => string;
  readonly window = new SendWindow(CALLS_IN_FLIGHT);
  readonly subscriber: Subscriber;
  readonly #inboxes: Inboxes;
  /** What this connection shares among the views of one keyspace, by keyspace. */
  readonly #namespaces = new Map<string, NamespaceLink>();
  /** The identity of the fleet of each namespace, as this connection read it last. */
  readonly #fleetIds = new Map<string, string>();
  readonly #lookingAgain: NodeJS.Timeout;

  /** Throws QUEUE_UNAVAILABLE when Redis is out of reach, REDIS_UNSUITABLE when it would lose commands. */
  static async open(redisUrl: string): Promise<Connection> {
    const nextId = createIds();
    const id = nextId();
    const connected = await connectRedis(redisUrl, 'producer', `shellfleet-producer-${id}`);
    const { redis, history, duplicate, clockProblem } = connected;
    void clockProblem.then((problem) => problem !== undefined && warn(problem));
    return new Connection(id, nextId, redis, history, duplicate);
  }

  private constructor(
    id: string,
    nextId: () => string,
    redis: Redis,
    history: RedisHistory,
    duplicate: (role: 'subscriber', name: string) => Redis,
  ) {
    this.id = id;
    this.nextId = nextId;
    this.redis = redis;
    this.history = history;
    this.subscriber = new Subscriber(() => duplicate('subscriber', `shellfleet-feeds-${id}`));
    this.#inboxes = new Inboxes(this.subscriber, id);
    // Every queue of every namespace listens on it.
    redis.setMaxListeners(0);
    redis.on('ready', () => this.#reconnected());
    this.#lookingAgain = setInterval(() => void this.#lookAgain(), LOOK_AGAIN_EVERY_MS).unref();
  }

  /**
   * The keyspace of the fleet in a namespace. Where none is declared, that of the fleet which this connection used last, else a new one after
   * a wait for its hosts.
   */
  async findKeyspace(namespace: string): Promise<string> {
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

  /** Adds a view to its fleet. */
  join(namespace: string, user: ConnectionUser): NamespaceLink {
    const link = this.#namespaces.get(namespace) ?? this.#createLink(namespace);
    link.users.add(user);
    return link;
  }

  /** Removes a view. After the last one of a fleet, resolves when the session jobs that are being added are stored. */
  async leave(namespace: string, user: ConnectionUser): Promise<void> {
    const link = this.#namespaces.get(namespace);
    if (!link?.users.delete(user) || link.users.size > 0) return;
    this.#namespaces.delete(namespace);
    this.#inboxes.remove(namespace);
    await link.sessions.settled();
  }

  /** Receives what comes to the inbox of a namespace from now on. Resolves when no answer is missed. */
  openInbox(namespace: string): Promise<void> {
    return this.#inboxes.open(namespace, {
      onEnded: (notice) => {
        for (const user of this.#usersOf(namespace)) if (user.tenant === notice.tenant) user.onEnded(notice);
      },
      onAnswer: (id, sealed) => {
        for (const user of this.#usersOf(namespace)) user.onAnswer(id, sealed);
      },
      onGap: () => {
        for (const user of this.#usersOf(namespace)) user.onGap();
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
    const link = { fleet, sessions, tools: new ToolsQueue(this.redis, fleet), users: new Set<ConnectionUser>() };
    this.#namespaces.set(namespace, link);
    return link;
  }

  #usersOf(namespace: string): Iterable<ConnectionUser> {
    return this.#namespaces.get(namespace)?.users ?? [];
  }

  /** While Redis is down, the retention that was read last is used. */
  #readRetentions(): void {
    for (const namespace of this.#namespaces.keys()) void readRetention(this.redis, namespace).catch(() => {});
  }

  #reconnected(): void {
    void this.#lookAgain();
    for (const { users } of this.#namespaces.values()) for (const user of users) user.onReconnected();
  }

  /** What was read from Redis at the start: it may have been replaced by another since. */
  async #lookAgain(): Promise<void> {
    const namespaces = new Set([...this.#namespaces.keys()].map((keyspace) => parseKeyspace(keyspace).namespace));
    // One that cannot write does not declare: a host does.
    await Promise.allSettled([...namespaces].map((namespace) => this.findKeyspace(namespace)));
    this.#readRetentions();
  }

  #end(namespace: string, known: string, error: ShellfleetError): void {
    for (const user of this.#usersOf(toKeyspace(namespace, known))) user.onOtherFleet(error);
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

/** Random fractions as `ulid` expects them. The bytes come 1,024 at a time: a system call for each would cost as much as a small call to Redis. */
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
