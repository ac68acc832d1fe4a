/**
 * The starts of this host that are under way: each from the look at what was answered to the reply of the script that starts the entry. A
 * revocation is confirmed when those have ended that began before it.
 */
export class StartsUnderWay {
  readonly #all = new Set<Promise<unknown>>();

  async during<T>(start: () => Promise<T>): Promise<T> {
    const started = start();
    const settled = started.catch(() => {});
    this.#all.add(settled);
    try {
      return await started;
    } finally {
      this.#all.delete(settled);
    }
  }

  /** Resolves when every start has ended that is under way now. */
  async settled(): Promise<void> {
    await Promise.all(this.#all);
  }
}
