import { type InboxNotice, parseInboxMessage } from '@shellfleet/mailbox';
import { inboxChannel } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

// SUBSCRIBER-1. Messages are hints. Redis drops those that it publishes while this process is not subscribed, or reads too slowly.
// SUBSCRIBER-2. After each time in which messages may have been dropped, every receiver's onGap() is called, with the subscription active again.
//               So each change is found by a look that begins then, or is announced by a message.

export interface Receiver {
  onMessage(message: string): void;
  /** Messages may have been dropped. */
  onGap(): void;
}

/**
 * Subscribing again changes nothing, but needs a reply: a connection without one is closed at the deadline of the call, and made anew. In a
 * Cluster it also restores a subscription that was lost with its node.
 */
const SUBSCRIBE_AGAIN_MS = 10_000;

interface Channel {
  receivers: Set<Receiver>;
  subscribed: Promise<unknown>;
}

/** The subscriptions of a process, over one Redis connection, which is made when it is needed. */
export class Subscriber {
  readonly #connect: () => Redis;
  readonly #channels = new Map<string, Channel>();
  #redis?: Redis;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(connect: () => Redis) {
    this.#connect = connect;
  }

  /** Resolves when the subscription is active: a message after that is not missed. Also when Redis is down: onGap() is called when it is back. */
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

  /** If it fails, the connection breaks and becomes ready again. */
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
  /** The sealed answer to a question, or the sealed result of a tool call (empty when it has to be read). */
  onAnswer(questionId: string, sealed: string): void;
  /** Notices may have been dropped. */
  onGap(): void;
}

interface Inbox {
  receiver: Receiver;
  opened: Promise<void>;
}

/** The inboxes of this process, one per namespace. Notices are hints: a lost one causes only a delay, because results are also looked up. */
export class Inboxes {
  readonly #subscriber: Subscriber;
  readonly #inboxId: string;
  readonly #inboxes = new Map<string, Inbox>();

  constructor(subscriber: Subscriber, inboxId: string) {
    this.#subscriber = subscriber;
    this.#inboxId = inboxId;
  }

  /** Receives from now on what comes to the inbox of a namespace. Resolves when no answer is missed. Further calls return the same promise. */
  open(namespace: string, receiver: NoticeReceiver): Promise<void> {
    const known = this.#inboxes.get(namespace);
    if (known !== undefined) return known.opened;
    const raw: Receiver = {
      onMessage: (message) => dispatch(message, receiver),
      onGap: () => receiver.onGap(),
    };
    // An entry that was submitted before may have ended meanwhile.
    const opened = this.#subscriber.add(inboxChannel(namespace, this.#inboxId), raw).then(() => receiver.onGap());
    this.#inboxes.set(namespace, { receiver: raw, opened });
    return opened;
  }

  remove(namespace: string): void {
    const inbox = this.#inboxes.get(namespace);
    if (inbox === undefined) return;
    this.#inboxes.delete(namespace);
    this.#subscriber.remove(inboxChannel(namespace, this.#inboxId), inbox.receiver);
  }
}

function dispatch(text: string, receiver: NoticeReceiver): void {
  const message = parseInboxMessage(text);
  if (message?.type === 'notice') receiver.onEnded(message);
  else if (message?.type === 'answer') receiver.onAnswer(message.id, message.sealed);
}
