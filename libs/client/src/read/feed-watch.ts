import { Notifier } from '@shellfleet/concurrency';
import { sessionKeys } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

// FEED-1. A session with a message is read once, from its last known event on. Messages are only hints.
// FEED-2. A message about output alone moves the last known event of a session that needs no reading, so the output is
//     never read.
// FEED-3. The number of sessions that are remembered is limited by time: their next event is later than `REMEMBERED_MS`
//     before its own message.

const REMEMBERED_MS = 5 * 60_000;
const FORGET_EVERY = 1_000;
const FEED = /^(\d{1,15})-(\d{1,20})( output)?$/;

/** Notes which sessions have events that were not read, by the channels of their feeds. */
export class FeedWatch implements Disposable {
  readonly #redis: Redis;
  readonly #prefix: string;
  /** Id of the event after which a session is read when nothing is known of it. */
  readonly #start: string;
  readonly #notifier = new Notifier();
  /** Ids of the last events that were read, by `<tenant>:<session>`. */
  readonly #read = new Map<string, string>();
  readonly #changed = new Set<string>();
  #hasGap = false;

  constructor(redis: Redis, namespace: string, tenant: string | undefined, start: string) {
    this.#redis = redis;
    this.#start = start;
    this.#prefix = sessionKeys(namespace, '', '').feed.slice(0, -1);
    const pattern = sessionKeys(namespace, tenant ?? '*', '*').feed;
    redis.on('pmessage', (_pattern: string, channel: string, message: string) => this.#onMessage(channel, message));
    let isFirst = true;
    redis.on('ready', () => {
      if (!isFirst)
        void redis.psubscribe(pattern).then(
          () => this.#onGap(),
          () => {},
        );
      isFirst = false;
    });
    this.subscribed = redis.psubscribe(pattern).catch((error: unknown) => {
      throw toQueueError(error);
    });
    this.subscribed.catch(() => {});
  }

  /** Resolves when every later message is received. */
  readonly subscribed: Promise<unknown>;

  /** Adds a session to those that are read next. */
  note(member: string): void {
    this.#changed.add(member);
    this.#notifier.notify();
  }

  /** Returns the sessions to read, each with the id after which to read. */
  take(): { member: string; after: string }[] {
    const taken = [...this.#changed].map((member) => ({ member, after: this.#read.get(member) ?? this.#start }));
    this.#changed.clear();
    return taken;
  }

  /** Tells whether messages may have been dropped since the last call. */
  takeGap(): boolean {
    const hadGap = this.#hasGap;
    this.#hasGap = false;
    return hadGap;
  }

  /** Notes the last event of a session that was read. */
  wasRead(member: string, id: string): void {
    const known = this.#read.get(member);
    if (known !== undefined && !isLater(id, known)) return;
    this.#read.delete(member);
    this.#read.set(member, id);
    if (this.#read.size % FORGET_EVERY === 0) this.#forget(Number(id.split('-')[0]) - 2 * REMEMBERED_MS);
  }

  async wait(timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    await this.#notifier.wait({ timeoutMs, signal });
  }

  [Symbol.dispose](): void {
    this.#redis.disconnect();
  }

  #onMessage(channel: string, message: string): void {
    const member = channel.slice(this.#prefix.length);
    const [, ms, seq, output] = FEED.exec(message) ?? [];
    // A third part is the id of a terminal.
    if (ms === undefined || member.split(':').length !== 2) return;
    if (output !== undefined) {
      if (!this.#changed.has(member)) this.wasRead(member, `${ms}-${seq}`);
      return;
    }
    if (!this.#read.has(member)) {
      const from = `${Number(ms) - REMEMBERED_MS}-0`;
      if (isLater(from, this.#start)) this.#read.set(member, from);
    }
    this.note(member);
  }

  #onGap(): void {
    this.#hasGap = true;
    for (const member of this.#read.keys()) this.#changed.add(member);
    this.#notifier.notify();
  }

  /** Forgets the sessions whose last event is older. They are in the order of their reading. */
  #forget(beforeMs: number): void {
    for (const [member, id] of this.#read) {
      if (Number(id.split('-')[0]) >= beforeMs) return;
      if (!this.#changed.has(member)) this.#read.delete(member);
    }
  }
}

/** Tells whether the id of a stream entry is later than another one. */
function isLater(a: string, b: string): boolean {
  const [aMs = 0, aSeq = 0] = a.split('-').map(Number);
  const [bMs = 0, bSeq = 0] = b.split('-').map(Number);
  return aMs === bMs ? aSeq > bSeq : aMs > bMs;
}
