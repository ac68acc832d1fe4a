import { Notifier } from '@shellfleet/concurrency';
import { feedPattern, ShellfleetError, sessionIdSchema, sessionKeys, tenantIdSchema } from '@shellfleet/protocol';
import { toQueueError } from '@shellfleet/redis';
import type { Redis } from 'ioredis';

// FEED-1. A session with a message is read once, from its last known event on. Messages are only hints.
// FEED-2. A message about output alone moves the last known event of a session that needs no reading and is not being
//     read, so the output is never read, and no event before it is left out.
// FEED-3. A session is remembered for twice `REMEMBERED_MS` after its last event, and their number is limited. One that
//     is not remembered is read from `REMEMBERED_MS` before its message on, and never from before the start.

const REMEMBERED_MS = 5 * 60_000;
const MOST_SESSIONS = 500_000;
const FORGET_EVERY = 1_000;
const FEED = /^(\d{1,15})-(\d{1,20})( output)?$/;

interface LastEvent {
  id: string;
  /** When the session was noted last (ms, by the clock of `performance`). */
  notedAt: number;
}

/** Notes which sessions have events that were not read, by the channels of their feeds. */
export class FeedWatch implements Disposable {
  readonly #redis: Redis;
  readonly #prefix: string;
  /** Prefix of the channels whose messages are of use. */
  readonly #wanted: string;
  readonly #mostSessions: number;
  /** Id of the event after which a session is read when nothing is known of it. Undefined before `begin`. */
  #start: string | undefined;
  #pattern: string;
  readonly #notifier = new Notifier();
  /** Last events that were read, by `<tenant>:<session>`. The session that was noted last is at the end. */
  readonly #read = new Map<string, LastEvent>();
  #noted = 0;
  readonly #changed = new Set<string>();
  /** Sessions that were taken and are not read yet. */
  readonly #reading = new Set<string>();
  /** Whether messages may be dropped, because the connection is away. */
  #isAway = false;
  #hasGap = false;

  constructor(redis: Redis, keyspace: string, tenant: string | undefined, mostSessions = MOST_SESSIONS) {
    this.#redis = redis;
    this.#mostSessions = mostSessions;
    this.#prefix = sessionKeys(keyspace, '', '').feed.slice(0, -1);
    this.#wanted = tenant === undefined ? this.#prefix : `${this.#prefix}${tenant}:`;
    this.#pattern = feedPattern(keyspace, tenant);
    redis.on('pmessage', (_pattern: string, channel: string, message: string) => this.#onMessage(channel, message));
    redis.on('close', () => {
      this.#isAway = true;
    });
    let isFirst = true;
    redis.on('ready', () => {
      if (!isFirst)
        void redis.psubscribe(this.#pattern).then(
          () => this.#onGap(),
          () => {},
        );
      isFirst = false;
    });
    this.subscribed = this.#subscribe(feedPattern(keyspace));
    this.subscribed.catch(() => {});
  }

  /** Resolves when every later message is received. Rejects with REDIS_UNSUITABLE if the user may not subscribe. */
  readonly subscribed: Promise<void>;

  /** Has the sessions read from this event on. Those with messages until now are read first. */
  begin(start: string): void {
    this.#start = start;
  }

  /** The number of sessions to read. */
  get changed(): number {
    return this.#changed.size;
  }

  /** Adds a session to those that are read next. */
  note(member: string): void {
    if (this.#changed.size >= this.#mostSessions && !this.#changed.has(member)) this.#hasGap = true;
    else this.#changed.add(member);
    this.#notifier.notify();
  }

  /** Returns at most so many sessions to read, each with the id after which to read. */
  take(most: number): { member: string; after: string }[] {
    const taken: { member: string; after: string }[] = [];
    for (const member of this.#changed) {
      if (taken.length === most) break;
      taken.push({ member, after: this.#read.get(member)?.id ?? this.#start ?? '0-0' });
      this.#changed.delete(member);
      this.#reading.add(member);
    }
    return taken;
  }

  /** Tells whether messages may have been dropped since the last call. */
  takeGap(): boolean {
    const hadGap = this.#hasGap;
    this.#hasGap = false;
    return hadGap;
  }

  /** Notes that a session that was taken was read, up to the event `id` if there were any. */
  wasRead(member: string, id: string | undefined): void {
    this.#reading.delete(member);
    if (id !== undefined) this.#remember(member, id);
  }

  async wait(timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    await this.#notifier.wait({ timeoutMs, signal });
  }

  [Symbol.dispose](): void {
    this.#redis.disconnect();
  }

  /** Subscribes to what is wanted, or to the feeds of all tenants when the user may only do that. */
  async #subscribe(all: string): Promise<void> {
    const own = this.#pattern;
    try {
      await this.#redis.psubscribe(own).catch(async (error: unknown) => {
        if (!isForbidden(error) || own === all) throw error;
        this.#pattern = all;
        await this.#redis.psubscribe(all);
      });
    } catch (error) {
      throw isForbidden(error) ? mayNotSubscribe(own) : toQueueError(error);
    }
  }

  #onMessage(channel: string, message: string): void {
    if (!channel.startsWith(this.#wanted)) return;
    const member = channel.slice(this.#prefix.length);
    const [, ms, seq, output] = FEED.exec(message) ?? [];
    // Any process may publish to a channel.
    if (ms === undefined || !isMember(member)) return;
    if (output !== undefined) {
      const mayHaveEvents = this.#isAway || this.#changed.has(member) || this.#reading.has(member);
      if (this.#start !== undefined && !mayHaveEvents) this.#remember(member, `${ms}-${seq}`);
      return;
    }
    if (this.#start !== undefined && !this.#read.has(member)) {
      const from = `${Math.max(0, Number(ms) - REMEMBERED_MS)}-0`;
      this.#remember(member, isLater(from, this.#start) ? from : this.#start);
    }
    this.note(member);
  }

  #onGap(): void {
    this.#isAway = false;
    this.#hasGap = true;
    for (const member of this.#read.keys()) this.#changed.add(member);
    this.#notifier.notify();
  }

  /** Stores the last known event of a session, unless a later one is known. */
  #remember(member: string, id: string): void {
    const known = this.#read.get(member)?.id;
    this.#read.delete(member);
    this.#read.set(member, { id: known !== undefined && isLater(known, id) ? known : id, notedAt: performance.now() });
    this.#noted += 1;
    if (this.#noted % FORGET_EVERY === 0) this.#forget(performance.now() - 2 * REMEMBERED_MS);
  }

  /** Forgets the sessions that were noted last before this time, and the oldest of too many. */
  #forget(before: number): void {
    for (const [member, { notedAt }] of this.#read) {
      if (notedAt >= before && this.#read.size <= this.#mostSessions) return;
      if (!this.#changed.has(member) && !this.#reading.has(member)) this.#read.delete(member);
    }
  }
}

/** Tells whether a text is `<tenant>:<session>`. The channel of a terminal has a third part. */
function isMember(text: string): boolean {
  const [tenant, session, ...others] = text.split(':');
  return others.length === 0 && tenantIdSchema.safeParse(tenant).success && sessionIdSchema.safeParse(session).success;
}

/** Tells whether the id of a stream entry is later than another one. */
export function isLater(a: string, b: string): boolean {
  const [aMs = 0, aSeq = 0] = a.split('-').map(Number);
  const [bMs = 0, bSeq = 0] = b.split('-').map(Number);
  return aMs === bMs ? aSeq > bSeq : aMs > bMs;
}

const isForbidden = (error: unknown) => error instanceof Error && error.message.startsWith('NOPERM');

function mayNotSubscribe(pattern: string): ShellfleetError {
  return new ShellfleetError(
    'REDIS_UNSUITABLE',
    'Redis does not let this user follow events. Give it `+psubscribe` and the channel pattern ' +
      `\`&${pattern}\` of docs/operations.md, or use a user that has them.`,
    { setting: 'acl', command: `PSUBSCRIBE ${pattern}` },
  );
}
