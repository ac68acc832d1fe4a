import { Notifier } from '@shellfleet/concurrency';
import type { FeedSubscriber } from './feed-subscriber.ts';

/** Wakes one reader when its stream may have grown: a hint to read the stream. Disposing it ends the subscription. */
export interface Wake extends Disposable {
  /** Resolves at the next hint, at once when one came since the last call. Rejects when the signal aborts, and when the view is closed. */
  next(signal?: AbortSignal): Promise<void>;
  /** Wakes the reader, for another reason than its stream. */
  hint(): void;
}

/** The readers of one view, on the subscriptions of its connection. */
export class Feeds {
  readonly #subscriber: FeedSubscriber;
  readonly #readers = new Set<Reader>();
  #closed?: Error;

  constructor(subscriber: FeedSubscriber) {
    this.#subscriber = subscriber;
  }

  /** Resolves when the subscription to the channel is active: a change after that is not missed. */
  async follow(channel: string): Promise<Wake> {
    if (this.#closed !== undefined) throw this.#closed;
    const reader = new Reader(() => {
      this.#readers.delete(reader);
      this.#subscriber.remove(channel, reader.hint);
    });
    this.#readers.add(reader);
    await this.#subscriber.add(channel, reader.hint);
    return reader;
  }

  wakeAll(): void {
    for (const reader of this.#readers) reader.hint();
  }

  /** Readers that wait now or later are rejected with the error. */
  close(error: Error): void {
    this.#closed = error;
    for (const reader of this.#readers) reader.fail(error);
  }
}

class Reader implements Wake {
  readonly #leave: () => void;
  readonly #hints = new Notifier();
  #failed?: Error;

  constructor(leave: () => void) {
    this.#leave = leave;
  }

  readonly hint = (): void => {
    this.#hints.notify();
  };

  fail(error: Error): void {
    this.#failed = error;
    this.#hints.notify();
  }

  async next(signal?: AbortSignal): Promise<void> {
    if (this.#failed === undefined) await this.#hints.wait({ signal });
    if (this.#failed !== undefined) throw this.#failed;
  }

  [Symbol.dispose](): void {
    this.#leave();
  }
}
