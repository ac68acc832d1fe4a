import { BATCH_LEASE_MS } from '@shellfleet/mailbox';

/** Share of a lease for which its holder counts on it. The rest covers clocks that run at different speeds. */
const MARGIN = 0.9;

/**
 * The lease of a batch by the clocks of this process. It counts from when its last confirmed renewal was sent, because
 * Redis may have set it long before the reply.
 */
export class HeldLease {
  readonly #clock: () => Times;
  #sent: Times;
  #lost = false;

  constructor(clock: () => Times = readClocks) {
    this.#clock = clock;
    this.#sent = clock();
  }

  /** Whether the lease is surely held. It is not renewed any more once it was not. */
  get held(): boolean {
    if (!this.#lost && agesOf(this.#sent, this.#clock()) >= BATCH_LEASE_MS * MARGIN) this.#lost = true;
    return !this.#lost;
  }

  /** Renews the lease with a call whose success confirms it. */
  async renew<T>(call: () => Promise<T>): Promise<T> {
    const sent = this.#clock();
    const reply = await call();
    if (this.held) this.#sent = sent;
    return reply;
  }

  /** Gives the lease up, or takes note of its loss. */
  lose(): void {
    this.#lost = true;
  }
}

/** Times of two clocks, in ms. The wall clock may be set, and the other one stands still while a machine sleeps. */
interface Times {
  wall: number;
  monotonic: number;
}

const readClocks = (): Times => ({ wall: Date.now(), monotonic: performance.now() });

/** Returns the greater of the ages by the two clocks. */
const agesOf = (from: Times, now: Times): number => Math.max(now.wall - from.wall, now.monotonic - from.monotonic);
