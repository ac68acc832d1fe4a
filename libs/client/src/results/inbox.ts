import { setTimeout as delay } from 'node:timers/promises';
import { keepInbox } from '@shellfleet/mailbox';
import { inboxKey } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Answers } from './answers.ts';
import type { PendingResults } from './pending-results.ts';

const BLOCK_MS = 5_000;
const NOTICES_A_READ = 500;
/** What was read is cut away after this many notices, so that a busy inbox stays small. */
const TRIM_AFTER = 200;
const KEEP_EVERY_MS = 60_000;

/** Reads the inbox of this process, on the one connection that may block. */
export class Inbox {
  readonly #connection: () => Redis;
  readonly #redis: Redis;
  readonly #key: string;
  readonly #pending: PendingResults;
  readonly #answers: Answers;
  readonly #namespace: string;
  readonly #producerId: string;
  #blocking?: Redis;
  #keeping?: NodeJS.Timeout;
  #closed = false;

  constructor(
    connection: () => Redis,
    redis: Redis,
    namespace: string,
    producerId: string,
    readers: { pending: PendingResults; answers: Answers },
  ) {
    this.#connection = connection;
    this.#redis = redis;
    this.#key = inboxKey(namespace, producerId);
    this.#pending = readers.pending;
    this.#answers = readers.answers;
    this.#namespace = namespace;
    this.#producerId = producerId;
  }

  /** Starts reading at the first call. */
  open(): void {
    if (this.#blocking !== undefined || this.#closed) return;
    this.#blocking = this.#connection();
    this.keep();
    this.#keeping = setInterval(() => this.keep(), KEEP_EVERY_MS).unref();
    void this.#read(this.#blocking);
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#keeping);
    if (this.#blocking === undefined) return;
    this.#blocking.disconnect();
    void this.#redis.del(this.#key).catch(() => {});
  }

  /** Hints that find no inbox are lost; results are then looked up. */
  keep(): void {
    void keepInbox(this.#redis, this.#namespace, this.#producerId).catch(() => {});
  }

  // Ends when the inbox is closed.
  async #read(blocking: Redis): Promise<void> {
    let last = '0-0';
    let untrimmed = 0;
    while (!this.#closed) {
      try {
        const reply = await blocking.xread('COUNT', NOTICES_A_READ, 'BLOCK', BLOCK_MS, 'STREAMS', this.#key, last);
        const notices = reply?.[0]?.[1] ?? [];
        for (const [id, fields] of notices) {
          last = id;
          this.#receive(fields);
        }
        untrimmed += notices.length;
        if (untrimmed < TRIM_AFTER) continue;
        untrimmed = 0;
        void this.#redis.xtrim(this.#key, 'MINID', last).catch(() => {});
      } catch {
        // Redis is away; results are looked up again when it is back.
        if (!this.#closed) await delay(500);
      }
    }
  }

  #receive(fields: string[]): void {
    if (fields[0] === 'a') {
      const [, id = '', , sealed = ''] = fields;
      this.#answers.settle(id, sealed);
    } else {
      const [, , , session = '', , entryId = '', , event = '', , json = ''] = fields;
      void this.#pending.notice(session, entryId, event, json);
    }
  }
}
