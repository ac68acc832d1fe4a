import { RENEW_DRIVER_EVERY_MS, renewDriver } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** The sessions that a view drives. One timer renews their heartbeats. */
export class DrivenSessions {
  readonly #redis: Redis;
  /** Session → number of objects of this process that drive it. */
  readonly #driven = new Map<string, { keys: SessionKeys; times: number }>();
  #timer?: NodeJS.Timeout | undefined;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Drives a newly opened session until the returned object is disposed. */
  drive(keys: SessionKeys): Disposable {
    const one = this.#driven.get(keys.prefix) ?? { keys, times: 0 };
    one.times++;
    this.#driven.set(keys.prefix, one);
    this.#timer ??= setInterval(() => this.renew(), RENEW_DRIVER_EVERY_MS).unref();
    let driving = true;
    return {
      [Symbol.dispose]: () => {
        if (driving && --one.times === 0) this.#remove(keys);
        driving = false;
      },
    };
  }

  /** Renews the heartbeats. If Redis is down, the next round tries again. */
  renew(): void {
    for (const { keys } of this.#driven.values()) void renewDriver(this.#redis, keys).catch(() => {});
  }

  close(): void {
    this.#driven.clear();
    clearInterval(this.#timer);
  }

  #remove(keys: SessionKeys): void {
    this.#driven.delete(keys.prefix);
    if (this.#driven.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
