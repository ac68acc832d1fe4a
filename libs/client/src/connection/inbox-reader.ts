import { setTimeout as delay } from 'node:timers/promises';
import { Notifier } from '@shellfleet/concurrency';
import { type InboxNotice, keepInbox, parseInboxEntry } from '@shellfleet/mailbox';
import { inboxKey } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

const BLOCK_MS = 5_000;
const NOTICES_PER_READ = 500;
/** After so many notices of an inbox, or so many characters, those that were read are trimmed, so that a busy inbox stays small. */
const TRIM_AFTER = 200;
const TRIM_AFTER_CHARS = 1 << 20;
const KEEP_EVERY_MS = 60_000;
const RETRY_MS = 500;

export interface NoticeReceiver {
  onEnded(notice: InboxNotice): void;
  /** The sealed answer to a question, or the sealed result of a tool call (empty when it has to be read). */
  onAnswer(questionId: string, sealed: string): void;
}

interface Inbox {
  namespace: string;
  key: string;
  receiver: NoticeReceiver;
  lastId: string;
  untrimmed: number;
  untrimmedChars: number;
}

/**
 * Reads the inboxes of this process, one per namespace, all over one blocking connection. Notices are hints: a lost one causes only a
 * delay, because results are also looked up.
 */
export class InboxReader {
  readonly #connect: () => Redis;
  readonly #redis: Redis;
  readonly #inboxId: string;
  readonly #inboxes = new Map<string, Inbox>();
  readonly #opened = new Notifier();
  #blocking?: Redis;
  #keeping?: NodeJS.Timeout;
  #closed = false;

  /** `connect` makes the blocking connection. `redis` is for everything else. */
  constructor(connect: () => Redis, redis: Redis, inboxId: string) {
    this.#connect = connect;
    this.#redis = redis;
    this.#inboxId = inboxId;
  }

  /** Reads the inbox of a namespace from now on. Further calls change nothing. */
  open(namespace: string, receiver: NoticeReceiver): void {
    const key = inboxKey(namespace, this.#inboxId);
    if (this.#inboxes.has(key) || this.#closed) return;
    const [other] = this.#inboxes.values();
    this.#inboxes.set(key, { namespace, key, receiver, lastId: '0-0', untrimmed: 0, untrimmedChars: 0 });
    this.keep(namespace);
    // The read that is under way does not include the new inbox. Keeping another one adds an entry to it, which ends that read.
    if (other !== undefined) this.keep(other.namespace);
    this.#opened.notify();
    if (this.#blocking !== undefined) return;
    this.#blocking = this.#connect();
    this.#keeping = setInterval(() => this.#keepAll(), KEEP_EVERY_MS).unref();
    void this.#read(this.#blocking);
  }

  /** Creates the inbox, or renews its expiry. Notices for an inbox that does not exist are dropped. */
  keep(namespace: string): void {
    void keepInbox(this.#redis, namespace, this.#inboxId).catch(() => {});
  }

  /** Stops reading the inbox of a namespace and deletes it. */
  remove(namespace: string): void {
    const key = inboxKey(namespace, this.#inboxId);
    if (!this.#inboxes.delete(key)) return;
    // Keeping it adds an entry, which ends the read that is under way: the next one does not include it.
    this.keep(namespace);
    void this.#redis.del(key).catch(() => {});
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#keeping);
    this.#blocking?.disconnect();
    this.#opened.notify();
  }

  #keepAll(): void {
    for (const { namespace } of this.#inboxes.values()) this.keep(namespace);
  }

  // Ends when the reader is closed.
  async #read(blocking: Redis): Promise<void> {
    while (!this.#closed) {
      const inboxes = [...this.#inboxes.values()];
      if (inboxes.length === 0) {
        await this.#opened.wait();
        continue;
      }
      const keys = inboxes.map(({ key }) => key);
      const lastIds = inboxes.map(({ lastId }) => lastId);
      try {
        const limits = ['COUNT', NOTICES_PER_READ, 'BLOCK', BLOCK_MS] as const;
        const reply = await blocking.xread(...limits, 'STREAMS', ...keys, ...lastIds);
        for (const [key, notices] of reply ?? []) this.#receive(this.#inboxes.get(key), notices);
      } catch {
        // Redis is down. Results are looked up when it is back.
        if (!this.#closed) await delay(RETRY_MS);
      }
    }
  }

  #receive(inbox: Inbox | undefined, notices: [id: string, fields: string[]][]): void {
    if (inbox === undefined) return;
    for (const [id, fields] of notices) {
      inbox.lastId = id;
      inbox.untrimmedChars += fields.reduce((sum, { length }) => sum + length, 0);
      dispatch(fields, inbox.receiver);
    }
    inbox.untrimmed += notices.length;
    if (inbox.untrimmed < TRIM_AFTER && inbox.untrimmedChars < TRIM_AFTER_CHARS) return;
    inbox.untrimmed = 0;
    inbox.untrimmedChars = 0;
    void this.#redis.xtrim(inbox.key, 'MINID', inbox.lastId).catch(() => {});
  }
}

function dispatch(fields: string[], receiver: NoticeReceiver): void {
  const entry = parseInboxEntry(fields);
  if (entry.type === 'answer') receiver.onAnswer(entry.id, entry.sealed);
  else receiver.onEnded(entry.notice);
}
