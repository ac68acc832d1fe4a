import { SharedRounds } from '@shellfleet/concurrency';
import { type EntryRecord, readRecord, readStream, type StoredEvent } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import pLimit from 'p-limit';

// SHARED-1. Readers that read the same at the same time share one call to Redis. The call begins after all of them
//     asked for it, so each gets what was there when it was woken.
// SHARED-2. A whole page is shared as long as a reader holds it. So all readers of a stream together hold about as much
//     as the stream has, however many they are and however slowly they read.

/**
 * Most pages that are read at once. The last of a thousand replies would miss its deadline and break the connection.
 */
const PAGES_AT_ONCE = 8;

const ofConnections = new WeakMap<Redis, SharedReads>();

/** The calls by which all readers of a connection read streams. */
export class SharedReads {
  readonly #limit = pLimit(PAGES_AT_ONCE);
  readonly #pages: SharedRounds<StoredEvent[]>;
  readonly #records: SharedRounds<EntryRecord | undefined>;
  /** Whole pages that readers hold. */
  readonly #held = new Map<string, WeakRef<StoredEvent[]>>();
  readonly #dropped = new FinalizationRegistry((name: string) => {
    if (this.#held.get(name)?.deref() === undefined) this.#held.delete(name);
  });

  static of(redis: Redis): SharedReads {
    const known = ofConnections.get(redis) ?? new SharedReads(redis);
    ofConnections.set(redis, known);
    return known;
  }

  private constructor(redis: Redis) {
    this.#pages = new SharedRounds((name) => {
      const [stream, from, count] = JSON.parse(name) as [string, string, number];
      return this.#limit(() => readStream(redis, { stream }, from, count));
    });
    this.#records = new SharedRounds((name) => {
      const [keys, entryId] = JSON.parse(name) as [SessionKeys, string];
      return readRecord(redis, keys, entryId);
    });
  }

  /** Reads up to `count` events from the id `from` on, as `readStream`. */
  async page({ stream }: SessionKeys, from: string, count: number): Promise<StoredEvent[]> {
    const name = JSON.stringify([stream, from, count]);
    const held = this.#held.get(name)?.deref();
    if (held !== undefined) return held;
    const page = await this.#pages.run(name);
    // Nothing is added between the events of a whole page.
    if (page.length === count && this.#held.get(name)?.deref() !== page) {
      this.#held.set(name, new WeakRef(page));
      this.#dropped.register(page, name);
    }
    return page;
  }

  /** Reads the record of an entry, as `readRecord`. */
  record(keys: SessionKeys, entryId: string): Promise<EntryRecord | undefined> {
    return this.#records.run(JSON.stringify([keys, entryId]));
  }
}
