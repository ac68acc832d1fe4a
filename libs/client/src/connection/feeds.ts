import { Notifier, type SharedTimer } from '@shellfleet/concurrency';
import type { Receiver, Subscriber } from './subscriber.ts';

/** Interval at which readers wake without a hint, because a hint may be lost. */
export const WAKE_AGAIN_MS = 1_500;

/** Wakes one reader when its stream may have grown. Its disposal ends the subscription. */
export interface Wake extends Disposable {
  /** Resolves at the next hint, or at once if there was a hint since the last call. Rejects on abort or close. */
  next(signal?: AbortSignal): Promise<void>;
  /** Wakes the reader as a hint does. */
  readonly hint: () => void;
}

/** The readers of one view, on the subscriptions of its connection. */
export class Feeds {
  readonly #subscriber: Subscriber;
  readonly #readers = new Set<Reader>();
  readonly #timer: SharedTimer;
  #closed?: Error;

  constructor(subscriber: Subscriber, timer: SharedTimer) {
    this.#subscriber = subscriber;
    this.#timer = timer;
  }

  /** Subscribes to a channel. When it resolves, every later change gives a hint. */
  async follow(channel: string): Promise<Wake> {
    if (this.#closed !== undefined) throw this.#closed;
    const reader = new Reader(() => {
      this.#readers.delete(reader);
      this.#subscriber.remove(channel, reader);
      if (this.#readers.size === 0) this.#timer.remove(this.wakeAll);
    });
    this.#readers.add(reader);
    this.#timer.add(this.wakeAll);
    await this.#subscriber.add(channel, reader);
    return reader;
  }

  readonly wakeAll = (): void => {
    for (const reader of this.#readers) reader.hint();
  };

  /** Rejects present and later waits with the error. */
  close(error: Error): void {
    this.#closed = error;
    this.#timer.remove(this.wakeAll);
    for (const reader of this.#readers) reader.fail(error);
  }
}

class Reader implements Wake, Receiver {
  readonly #leave: () => void;
  readonly #hints = new Notifier();
  #failed?: Error;

  constructor(leave: () => void) {
    this.#leave = leave;
  }

  readonly hint = (): void => {
    this.#hints.notify();
  };

  onMessage(): void {
    this.#hints.notify();
  }

  onGap(): void {
    this.#hints.notify();
  }

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
