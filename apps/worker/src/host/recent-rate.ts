const SECONDS = 10;

/** Counts events, and returns how many of them there were per second over the last 10 whole seconds. */
export class RecentRate {
  /** Counts of the present second and of those before it, each at its place modulo the length. */
  readonly #counts = new Array<number>(SECONDS + 1).fill(0);
  #second = 0;

  record(nowMs = performance.now()): void {
    this.#advance(nowMs);
    this.#counts[this.#second % this.#counts.length]! += 1;
  }

  perSecond(nowMs = performance.now()): number {
    this.#advance(nowMs);
    const present = this.#second % this.#counts.length;
    return this.#counts.reduce((sum, count, at) => (at === present ? sum : sum + count), 0) / SECONDS;
  }

  #advance(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    const first = Math.max(this.#second + 1, second - SECONDS);
    for (let at = first; at <= second; at += 1) this.#counts[at % this.#counts.length] = 0;
    this.#second = Math.max(this.#second, second);
  }
}
