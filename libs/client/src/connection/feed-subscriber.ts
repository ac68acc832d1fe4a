import type { Redis } from 'ioredis';

/** Redis drops a message when the subscriber is disconnected, so every listener is called this often as well. */
const CALL_AGAIN_MS = 1_500;

interface Channel {
  listeners: Set<() => void>;
  subscribed: Promise<unknown>;
}

/** The subscriptions of a process, over one Redis connection, with one timer that makes up for lost messages. */
export class FeedSubscriber {
  readonly #connect: () => Redis;
  readonly #channels = new Map<string, Channel>();
  #redis?: Redis;
  #timer: NodeJS.Timeout | undefined;

  constructor(connect: () => Redis) {
    this.#connect = connect;
  }

  /**
   * Calls the listener at every message of the channel, and every 1.5 s. Resolves when the subscription is active: a change after
   * that is not missed. While Redis is down the timer alone calls.
   */
  async add(channel: string, listener: () => void): Promise<void> {
    const known = this.#channels.get(channel) ?? this.#subscribe(channel);
    known.listeners.add(listener);
    this.#timer ??= setInterval(() => this.callAll(), CALL_AGAIN_MS).unref();
    await known.subscribed;
  }

  remove(channel: string, listener: () => void): void {
    const known = this.#channels.get(channel);
    if (!known?.listeners.delete(listener) || known.listeners.size > 0) return;
    this.#channels.delete(channel);
    void this.#redis?.unsubscribe(channel).catch(() => {});
    if (this.#channels.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  callAll(): void {
    for (const { listeners } of this.#channels.values()) for (const listener of listeners) listener();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#redis?.disconnect();
  }

  #subscribe(name: string): Channel {
    const subscribed = this.#connection()
      .subscribe(name)
      .catch(() => {});
    const channel = { listeners: new Set<() => void>(), subscribed };
    this.#channels.set(name, channel);
    return channel;
  }

  #connection(): Redis {
    if (this.#redis === undefined) {
      this.#redis = this.#connect();
      this.#redis.on('message', (channel: string) => {
        for (const listener of this.#channels.get(channel)?.listeners ?? []) listener();
      });
      this.#redis.on('ready', () => this.callAll());
    }
    return this.#redis;
  }
}
