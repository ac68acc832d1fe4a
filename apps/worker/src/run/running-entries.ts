/** Time for which a session counts as running after a command's end, since another one probably follows. */
const RECENT_MS = 250;

/** The running entries of this host. They decide whether one must share the processor. */
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

  /** Whether another entry runs, or ran until just now. */
  get hasOthers(): boolean {
    return this.#running.size > 1 || performance.now() - this.#endedAt < RECENT_MS;
  }
}
