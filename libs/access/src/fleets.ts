import type { ConnectOptions, Fleet } from '@shellfleet/client';
import type { Principal } from './principal.ts';

// FLEETS-1. A tenant and caller have one Fleet. All of them share the connections of the process.
// FLEETS-2. A Fleet in use is not closed. Unused ones are closed after 10 minutes, and the longest unused ones earlier
//     when there are more than 2,000.

/** Connects a fleet for one caller. */
export type ConnectFleet = (identity: Pick<ConnectOptions, 'tenant' | 'caller'>) => Promise<Fleet>;

/** The right to use a fleet, until its disposal. */
export interface BorrowedFleet extends Disposable {
  readonly fleet: Fleet;
  /** Keeps the fleet open until a promise has settled, also after the disposal. */
  extendTo(promise: Promise<unknown>): void;
}

interface Kept {
  opening: Promise<Fleet>;
  users: number;
  usedAt: number;
}

const noop = () => {};
const MOST_KEPT = 2_000;
const UNUSED_MS = 600_000;
const LOOK_EVERY_MS = 60_000;

/** The fleets of all callers of a server. */
export class Fleets implements AsyncDisposable {
  readonly #connect: ConnectFleet;
  /** The longest unused ones come first. */
  readonly #kept = new Map<string, Kept>();
  readonly #timer: NodeJS.Timeout;

  constructor(connect: ConnectFleet) {
    this.#connect = connect;
    this.#timer = setInterval(() => this.#closeUnusedSince(Date.now() - UNUSED_MS), LOOK_EVERY_MS).unref();
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Returns the fleet of a caller. Rejects as `Fleet.connect`. */
  async borrow({ tenant, caller }: Pick<Principal, 'tenant' | 'caller'>): Promise<BorrowedFleet> {
    const key = JSON.stringify([tenant, caller.id, caller.name]);
    const kept = this.#kept.get(key) ?? { opening: this.#connect({ tenant, caller }), users: 0, usedAt: 0 };
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    kept.users++;
    try {
      const fleet = await kept.opening;
      this.#closeExcess();
      return {
        fleet,
        extendTo: (promise) => {
          kept.users++;
          promise.then(noop, noop).then(() => this.#release(kept));
        },
        [Symbol.dispose]: () => this.#release(kept),
      };
    } catch (error) {
      this.#kept.delete(key);
      throw error;
    }
  }

  /** Closes every fleet, and with it all waits. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    const all = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.allSettled(all.map(async ({ opening }) => (await opening).close()));
  }

  #release(kept: Kept): void {
    kept.users--;
    kept.usedAt = Date.now();
  }

  #closeUnusedSince(before: number): void {
    for (const [key, kept] of this.#kept) if (kept.usedAt < before) this.#close(key, kept);
  }

  #closeExcess(): void {
    for (const [key, kept] of this.#kept) {
      if (this.#kept.size <= MOST_KEPT) return;
      this.#close(key, kept);
    }
  }

  #close(key: string, { opening, users }: Kept): void {
    if (users > 0) return;
    this.#kept.delete(key);
    void opening.then((fleet) => fleet.close()).catch(() => {});
  }
}
