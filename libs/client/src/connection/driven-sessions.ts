import type { SharedTimer } from '@shellfleet/concurrency';
import { renewDriver } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** The sessions that a view drives. The connection's timer renews their heartbeats. */
export class DrivenSessions {
  readonly #redis: Redis;
  /** Session → number of objects of this process that drive it. */
  readonly #driven = new Map<string, { keys: SessionKeys; times: number }>();
  readonly #timer: SharedTimer;

  constructor(redis: Redis, timer: SharedTimer) {
    this.#redis = redis;
    this.#timer = timer;
  }

  /** Drives a newly opened session until the returned object is disposed. */
  drive(keys: SessionKeys): Disposable {
    const one = this.#driven.get(keys.prefix) ?? { keys, times: 0 };
    one.times++;
    this.#driven.set(keys.prefix, one);
    this.#timer.add(this.renew);
    let driving = true;
    return {
      [Symbol.dispose]: () => {
        if (driving && --one.times === 0) this.#remove(keys);
        driving = false;
      },
    };
  }

  /** Renews the heartbeats. If Redis is down, the next round tries again. */
  readonly renew = (): void => {
    for (const { keys } of this.#driven.values()) void renewDriver(this.#redis, keys).catch(() => {});
  };

  close(): void {
    this.#driven.clear();
    this.#timer.remove(this.renew);
  }

  #remove(keys: SessionKeys): void {
    this.#driven.delete(keys.prefix);
    if (this.#driven.size === 0) this.#timer.remove(this.renew);
  }
}
