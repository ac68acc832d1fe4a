/** A session whose command ended this recently counts as running: its next command probably follows. */
const RECENT_MS = 250;

/** The entries that run on this host, for deciding whether one of them must share the processor. */
export class RunningEntries {
  readonly #running = new Set<string>();
  #endedAt = Number.NEGATIVE_INFINITY;

  async during<T>(entryId: string, run: () => Promise<T>): Promise<T> {
    this.#running.add(entryId);
    try {
      return await run();
    } finally {
      this.#running.delete(entryId);
      this.#endedAt = performance.now();
    }
  }

  get count(): number {
    return this.#running.size;
  }

  /** For an entry that runs: whether another runs too, or ran until just now. */
  get hasOthers(): boolean {
    return this.#running.size > 1 || performance.now() - this.#endedAt < RECENT_MS;
  }
}
