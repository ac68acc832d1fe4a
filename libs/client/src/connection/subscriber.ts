import { type InboxNotice, parseInboxMessage } from '@shellfleet/mailbox';
import { inboxChannel } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

// SUBSCRIBER-1. Messages are only hints. Redis drops them while this process is not subscribed, or reads too slowly.
// SUBSCRIBER-2. After each possible loss, every receiver's onGap() is called, with the subscription active again. So
//     each change is found by a reading that begins then, or is announced by a message.

export interface Receiver {
  onMessage(message: string): void;
  /** Called when messages may have been dropped. */
  onGap(): void;
}

/**
 * Interval at which subscriptions are repeated. A Cluster may have lost them with a node, and a missing reply closes
 * the connection.
 */
const SUBSCRIBE_AGAIN_MS = 10_000;

interface Channel {
  receivers: Set<Receiver>;
  subscribed: Promise<unknown>;
}

/** The subscriptions of a process, over one Redis connection that is made on first use. */
export class Subscriber {
  readonly #connect: () => Redis;
  readonly #channels = new Map<string, Channel>();
  #redis?: Redis;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(connect: () => Redis) {
    this.#connect = connect;
  }

  /**
   * Subscribes. When it resolves, the receiver gets every later message. While Redis is down it resolves at once, and
   * onGap() follows.
   */
  async add(channel: string, receiver: Receiver): Promise<void> {
    if (this.#isClosed) return;
    const known = this.#channels.get(channel) ?? this.#subscribe(channel);
    known.receivers.add(receiver);
    this.#timer ??= setInterval(() => void this.#renew(), SUBSCRIBE_AGAIN_MS).unref();
    await known.subscribed;
  }

  remove(channel: string, receiver: Receiver): void {
    const known = this.#channels.get(channel);
    if (!known?.receivers.delete(receiver) || known.receivers.size > 0) return;
    this.#channels.delete(channel);
    void this.#redis?.unsubscribe(channel).catch(() => {});
    if (this.#channels.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#redis?.disconnect();
  }

  #subscribe(name: string): Channel {
    const subscribed = this.#connection()
      .subscribe(name)
      .catch(() => {});
    const channel = { receivers: new Set<Receiver>(), subscribed };
    this.#channels.set(name, channel);
    return channel;
  }

  #connection(): Redis {
    if (this.#redis !== undefined) return this.#redis;
    const redis = this.#connect();
    redis.on('message', (channel: string, message: string) => {
      for (const receiver of this.#channels.get(channel)?.receivers ?? []) receiver.onMessage(message);
    });
    redis.on('ready', () => void this.#resume());
    this.#redis = redis;
    return redis;
  }

  /**
   * Subscribes again. If this fails, the connection is broken, and the subscription is repeated when it is ready again.
   */
  async #resume(): Promise<void> {
    if (!(await this.#renew())) return;
    for (const { receivers } of this.#channels.values()) for (const receiver of receivers) receiver.onGap();
  }

  async #renew(): Promise<boolean> {
    const names = [...this.#channels.keys()];
    if (names.length === 0 || this.#isClosed) return false;
    const renewing = this.#connection().subscribe(...names);
    return renewing.then(
      () => true,
      () => false,
    );
  }
}

export interface NoticeReceiver {
  onEnded(notice: InboxNotice): void;
  /** A sealed reply to a request, or the sealed result of a tool call (empty when it has to be read). */
  onReply(requestId: string, sealed: string): void;
  /** Called when notices may have been dropped. */
  onGap(): void;
}

interface Inbox {
  receiver: Receiver;
  opened: Promise<void>;
}

/**
 * The inboxes of this process, one for each tenant of a namespace. Results are also found by reading records, so a lost
 * notice only causes a delay.
 */
export class Inboxes {
  readonly #subscriber: Subscriber;
  readonly #inboxId: string;
  readonly #inboxes = new Map<string, Inbox>();

  constructor(subscriber: Subscriber, inboxId: string) {
    this.#subscriber = subscriber;
    this.#inboxId = inboxId;
  }

  /** Opens the inbox of a tenant, once. When it resolves, the inbox receives every later message. */
  open(namespace: string, tenant: string, receiver: NoticeReceiver): Promise<void> {
    const channel = inboxChannel(namespace, tenant, this.#inboxId);
    const known = this.#inboxes.get(channel);
    if (known !== undefined) return known.opened;
    const raw: Receiver = {
      onMessage: (message) => dispatch(message, receiver),
      onGap: () => receiver.onGap(),
    };
    // An entry that was submitted before the inbox opened may have ended already.
    const opened = this.#subscriber.add(channel, raw).then(() => receiver.onGap());
    this.#inboxes.set(channel, { receiver: raw, opened });
    return opened;
  }

  remove(namespace: string, tenant: string): void {
    const channel = inboxChannel(namespace, tenant, this.#inboxId);
    const inbox = this.#inboxes.get(channel);
    if (inbox === undefined) return;
    this.#inboxes.delete(channel);
    this.#subscriber.remove(channel, inbox.receiver);
  }
}

function dispatch(text: string, receiver: NoticeReceiver): void {
  const message = parseInboxMessage(text);
  if (message?.type === 'notice') receiver.onEnded(message);
  else if (message?.type === 'reply') receiver.onReply(message.id, message.sealed);
}
