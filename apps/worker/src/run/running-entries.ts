/** Somebody whose last command has just ended is about to send the next one. */
const RECENT_MS = 250;

/** The entries that run on this host, for what has to share it. */
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

  /** Asked by one that runs: does another, or has one lately? */
  get hasOthers(): boolean {
    return this.#running.size > 1 || performance.now() - this.#endedAt < RECENT_MS;
  }
}
