import { Notifier } from '@shellfleet/concurrency';
import type { Redis } from 'ioredis';

/** Pub/sub may lose a message, so every reader looks again this often. */
const LOOK_AGAIN_MS = 1_500;

/** Tells one reader that its session's stream may have grown. A pure hint: the reader then looks for itself. */
export interface Wake extends Disposable {
  /** Resolves at the next hint, at once when one came since the last call. Rejects when the signal aborts. */
  next(signal?: AbortSignal): Promise<void>;
}

/** All feeds of a process, over one subscriber connection, and one timer against lost messages. */
export class Feeds {
  readonly #subscriber: () => Redis;
  readonly #feeds = new Map<string, { readers: Set<Reader>; subscribed: Promise<unknown> }>();
  #redis?: Redis;
  #timer?: NodeJS.Timeout;
  #closed?: Error;

  constructor(subscriber: () => Redis) {
    this.#subscriber = subscriber;
  }

  /** Resolves when hints flow: what is read after that cannot be missed. Without the subscriber the timer alone wakes. */
  async follow(channel: string): Promise<Wake> {
    if (this.#closed !== undefined) throw this.#closed;
    const reader = new Reader(() => this.#leave(channel, reader));
    let feed = this.#feeds.get(channel);
    if (feed === undefined) {
      feed = {
        readers: new Set(),
        subscribed: this.#connection()
          .subscribe(channel)
          .catch(() => {}),
      };
      this.#feeds.set(channel, feed);
    }
    feed.readers.add(reader);
    this.#timer ??= setInterval(() => this.wakeAll(), LOOK_AGAIN_MS).unref();
    await feed.subscribed;
    return reader;
  }

  wakeAll(): void {
    for (const { readers } of this.#feeds.values()) for (const reader of readers) reader.hint();
  }

  /** Readers that wait, or come later, fail with the error. */
  close(error: Error): void {
    this.#closed = error;
    clearInterval(this.#timer);
    this.#redis?.disconnect();
    for (const { readers } of this.#feeds.values()) for (const reader of readers) reader.fail(error);
  }

  #leave(channel: string, reader: Reader): void {
    const feed = this.#feeds.get(channel);
    if (!feed?.readers.delete(reader) || feed.readers.size > 0) return;
    this.#feeds.delete(channel);
    void this.#redis?.unsubscribe(channel).catch(() => {});
    if (this.#feeds.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #connection(): Redis {
    if (this.#redis === undefined) {
      this.#redis = this.#subscriber();
      this.#redis.on('message', (channel: string) => {
        for (const reader of this.#feeds.get(channel)?.readers ?? []) reader.hint();
      });
      this.#redis.on('ready', () => this.wakeAll());
    }
    return this.#redis;
  }
}

class Reader implements Wake {
  readonly #leave: () => void;
  readonly #hints = new Notifier();
  #failed?: Error;

  constructor(leave: () => void) {
    this.#leave = leave;
  }

  hint(): void {
    this.#hints.notify();
  }

  fail(error: Error): void {
    this.#failed = error;
    this.hint();
  }

  async next(signal?: AbortSignal): Promise<void> {
    if (this.#failed === undefined) await this.#hints.wait({ signal });
    if (this.#failed !== undefined) throw this.#failed;
  }

  [Symbol.dispose](): void {
    this.#leave();
  }
}
