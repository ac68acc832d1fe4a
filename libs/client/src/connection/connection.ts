import { SessionsQueue } from '@shellfleet/admission';
import { connectRedis, type RedisHistory, readRetention } from '@shellfleet/mailbox';
import { type FleetKeys, fleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { SendWindow } from '../queue/send-window.ts';
import { ToolsQueue } from '../queue/tools-queue.ts';
import { warn } from '../warn.ts';
import { createIds } from './ids.ts';
import { Inboxes, type NoticeReceiver } from './inboxes.ts';
import { Subscriber } from './subscriber.ts';

/** Calls that may be in flight on the main connection. Even a slow Redis replies to this many well within the deadline of a call. */
const CALLS_IN_FLIGHT = 1_000;
/** Session jobs that are added at once, in each namespace. */
const JOBS_IN_FLIGHT = 200;

/** The part of a view that its connection uses. */
export interface ConnectionUser extends NoticeReceiver {
  tenant: string;
  /** Redis is back after it was down. */
  onReconnected(): void;
}

/** Workers may have been started again with another retention. */
const READ_RETENTION_EVERY_MS = 60_000;

/** The part of a connection that the views of one namespace share. */
export interface NamespaceLink {
  readonly fleet: FleetKeys;
  readonly sessions: SessionsQueue;
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
  readonly #namespaces = new Map<string, NamespaceLink>();
  readonly #readingRetention: NodeJS.Timeout;

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
    this.#readingRetention = setInterval(() => this.#readRetentions(), READ_RETENTION_EVERY_MS).unref();
  }

  /** Adds a view to its namespace. */
  join(namespace: string, user: ConnectionUser): NamespaceLink {
    const link = this.#namespaces.get(namespace) ?? this.#createLink(namespace);
    link.users.add(user);
    return link;
  }

  /** Removes a view. After the last one of a namespace, resolves when the session jobs that are being added are stored. */
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
    clearInterval(this.#readingRetention);
    this.subscriber.close();
    await this.redis.quit().catch(() => this.redis.disconnect());
  }

  #createLink(namespace: string): NamespaceLink {
    const fleet = fleetKeys(namespace);
    const sessions = new SessionsQueue(this.redis, fleet, new SendWindow(JOBS_IN_FLIGHT));
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
    this.#readRetentions();
    for (const { users } of this.#namespaces.values()) for (const user of users) user.onReconnected();
  }
}
