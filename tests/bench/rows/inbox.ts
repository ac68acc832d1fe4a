import { Redis } from 'ioredis';

/** The inbox of a minimal producer: one stream of results, read over a blocking connection of its own. */
export class Inbox {
  readonly key: string;
  readonly #blocking: Redis;
  readonly #waiting = new Map<string, (result: string) => void>();
  #next = 0;

  constructor(redisUrl: string, key: string) {
    this.key = key;
    this.#blocking = new Redis(redisUrl, { maxRetriesPerRequest: null });
    void this.#read();
  }

  /** Returns a new id, and the result that will arrive under it. */
  expect(): { id: string; result: Promise<string> } {
    const id = String(this.#next++);
    return { id, result: new Promise((resolve) => this.#waiting.set(id, resolve)) };
  }

  close(): void {
    this.#blocking.disconnect();
  }

  async #read(): Promise<void> {
    for (let last = '0'; ; ) {
      const found = await this.#blocking
        .xread('COUNT', 2_000, 'BLOCK', 2_000, 'STREAMS', this.key, last)
        .catch(() => undefined);
      if (found === undefined) return; // closed
      for (const [entry, [, id, , result]] of found?.[0]?.[1] ?? []) {
        last = entry;
        this.#waiting.get(id!)?.(result!);
        this.#waiting.delete(id!);
      }
    }
  }
}
