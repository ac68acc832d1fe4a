const MS_PER_64_KIB = 50;
/**
 * Time added to every budget, because the first use of a pattern and pauses of the process take time whatever the
 * number of bytes.
 */
const GRACE_MS = 200;

/** The time that the custom patterns of one stream may take. It grows with the bytes received. */
export class TimeBudget {
  readonly #now: (() => number) | undefined;
  readonly #spentMs = new Map<object, number>();
  #receivedBytes = 0;

  constructor(now: (() => number) | undefined) {
    this.#now = now;
  }

  receive(bytes: number): void {
    this.#receivedBytes += bytes;
  }

  /** Runs `work`. Throws TooSlow with the type `owner` when the total time exceeds the budget. */
  measure(owner: { type: string }, work: () => void): void {
    if (this.#now === undefined) {
      work();
      return;
    }
    const startedAt = this.#now();
    work();
    const spentMs = (this.#spentMs.get(owner) ?? 0) + this.#now() - startedAt;
    this.#spentMs.set(owner, spentMs);
    if (spentMs > GRACE_MS + (this.#receivedBytes / 65_536) * MS_PER_64_KIB) throw new TooSlow(owner.type);
  }
}

/** Thrown by a source that exceeds its time budget. Text that is not settled is then never released. */
export class TooSlow extends Error {
  readonly type: string;

  constructor(type: string) {
    super(`the rule ${type} is too slow`);
    this.type = type;
  }
}
