import type { Adopted } from '@shellfleet/mailbox';

type AdoptedTimes = Pick<Adopted, 'ownedAt' | 'activeAt' | 'clockAheadMs' | 'running'>;

/** Times of a session on this host, by the clock of Redis. They tell why its entries waited. */
export class SessionTimes {
  /** When this host became the owner. */
  readonly ownedAt: number;
  /** When the last entry ended. 0 if that is not known. */
  freeAt: number;
  readonly #clockAheadMs: number;

  constructor({ ownedAt, activeAt, clockAheadMs, running }: AdoptedTimes) {
    this.ownedAt = ownedAt;
    this.freeAt = running === undefined ? activeAt : 0;
    this.#clockAheadMs = clockAheadMs;
  }

  /** Converts a time of this host's clock. */
  toRedis(at: number): number {
    return at - this.#clockAheadMs;
  }

  /** Converts a time of Redis to one of this host's clock. */
  toHost(at: number): number {
    return at + this.#clockAheadMs;
  }

  /** Records the event that ended an entry. */
  recordEnd(event: string): void {
    this.freeAt = Number.parseInt(event, 10);
  }
}
