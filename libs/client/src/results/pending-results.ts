import type { Span } from '@opentelemetry/api';
import { abortable, SharedRounds, type SharedTimer } from '@shellfleet/concurrency';
import { type InboxNotice, readRecord } from '@shellfleet/mailbox';
import {
  isShellfleetError,
  type SessionKeys,
  ShellfleetError,
  toCommandId,
  type WireResult,
  withStoredAt,
} from '@shellfleet/protocol';
import { type RedisHistory, retentionOf } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { decodeTime } from 'ulid';
import { parseWireResult, readResult, resultExpired } from './read-result.ts';

// RESULTS-1. Every accepted entry that this view waits for settles once: with its Result, or with an error.
// RESULTS-2. A notice is a hint. Other Results are found by reading records, some at a time, on the connection's timer.
// RESULTS-3. An accepted entry without a record is submitted again only if Redis can have lost it: another Redis, or a
//     restarted one, has replied since, and the entry is far younger than the retention. Else it settles with
//     RESULT_EXPIRED.

/** Interval at which records are read. */
export const LOOK_AGAIN_MS = 3_000;
/**
 * Most entries that one look reads besides the oldest entry of each session. Entries of a session end in order, except
 * after cancellations.
 */
const OTHERS_PER_LOOK = 100;
const MOST_AT_ONCE = 500;
/** Share of the retention up to which a record cannot have expired, however much the clocks differ. */
const YOUNG_SHARE = 0.5;

export type Settled = { type: 'result'; wire: WireResult } | { type: 'error'; error: ShellfleetError };

export class Pending {
  readonly keys: SessionKeys;
  readonly entryId: string;
  /** True when Redis has accepted the entry, so that a missing record means a loss. */
  accepted = false;
  /** Submits the entry again. Undefined for an entry of another view or process. */
  resubmit?: () => Promise<void>;
  /** Releases the entry's room in the SubmitBudget. */
  release?: () => void;
  settled?: Settled;
  /** Span of the submit, if this process traces. */
  span?: Span;
  /**
   * Number of changes of Redis (RedisHistory) at the last reading that found the record, or else before the entry was
   * sent.
   */
  redisChanges: number;
  readonly #madeAt = performance.now();
  readonly #end = Promise.withResolvers<Settled>();

  constructor(keys: SessionKeys, entryId: string, redisChanges: number) {
    this.keys = keys;
    this.entryId = entryId;
    this.redisChanges = redisChanges;
  }

  /**
   * The greater age of two clocks. The wall clock may be set back, and the other clock stands still while the process
   * sleeps.
   */
  get ageMs(): number {
    return Math.max(Date.now() - decodeTime(this.entryId), performance.now() - this.#madeAt);
  }

  get commandId(): string {
    return toCommandId(this.keys.session, this.entryId);
  }

  settle(settled: Settled): void {
    this.settled ??= settled;
    this.#end.resolve(this.settled);
  }

  /** Waits for the Result. Rejects with the error of the entry, or with the reason of the signal. */
  async result(signal?: AbortSignal): Promise<WireResult> {
    const settled = await abortable(this.#end.promise, signal);
    if (settled.type === 'error') throw settled.error;
    return settled.wire;
  }
}

export interface Sent {
  pending: Pending;
  /** Whether the submit's idempotency key found `pending`, an earlier entry. */
  deduplicated: boolean;
}

export class PendingResults {
  readonly #redis: Redis;
  readonly #history: Pick<RedisHistory, 'changes'>;
  readonly #pending = new Map<string, Pending>();
  readonly #looks = new SharedRounds((name) => this.#lookAtOne(name));
  readonly #timer: SharedTimer;
  readonly #onTimer = () => void this.look().catch(() => {});
  #looking = false;
  #lookAgain = false;
  #nextOther = 0;
  #closed?: ShellfleetError;

  constructor(redis: Redis, history: Pick<RedisHistory, 'changes'>, timer: SharedTimer) {
    this.#redis = redis;
    this.#history = history;
    this.#timer = timer;
  }

  /** Returns the Pending of an entry, which is the same object for all waits on it. */
  expect(keys: SessionKeys, entryId: string): Pending {
    const name = nameOf(keys.session, entryId);
    const known = this.#pending.get(name);
    if (known !== undefined) return known;
    const pending = new Pending(keys, entryId, this.#history.changes);
    if (this.#closed !== undefined) {
      pending.settle({ type: 'error', error: this.#closed });
      return pending;
    }
    this.#pending.set(name, pending);
    this.#timer.add(this.#onTimer);
    return pending;
  }

  /** Ends the waiting without settling, for an entry that was not accepted or has settled. */
  forget(pending: Pending): void {
    pending.release?.();
    this.#pending.delete(nameOf(pending.keys.session, pending.entryId));
    if (this.#pending.size === 0) this.#timer.remove(this.#onTimer);
  }

  /** Settles an entry with the Result of its notice, or of the event that the notice names. */
  async notice({ session, entryId, event, result: json }: InboxNotice): Promise<void> {
    const pending = this.#pending.get(nameOf(session, entryId));
    if (pending === undefined) return;
    await this.#settleWith(pending, async () =>
      json === ''
        ? readResult(this.#redis, pending.keys, entryId, event)
        : withStoredAt(parseWireResult(json, pending.commandId), event),
    );
  }

  /** Reads some records, and settles or resubmits their entries. This finds ended entries whose notice was lost. */
  async look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      do {
        this.#lookAgain = false;
        await this.#lookOnce();
      } while (this.#lookAgain);
    } finally {
      this.#looking = false;
    }
  }

  /**
   * Reads records after notices may have been dropped. A reading under way may have begun before the loss, so another
   * one follows it.
   */
  async lookAfterGap(): Promise<void> {
    this.#lookAgain = true;
    await this.look();
  }

  /** Reads the records of some entries, and settles those that have ended. The waits on an entry share a reading. */
  async lookAt(some: readonly Pending[]): Promise<void> {
    await Promise.all(some.map(({ keys, entryId }) => this.#looks.run(nameOf(keys.session, entryId))));
  }

  /** Settles all present and later entries with the error. */
  close(error: ShellfleetError): void {
    this.#closed = error;
    this.#timer.remove(this.#onTimer);
    for (const pending of this.#pending.values()) pending.settle({ type: 'error', error });
    this.#pending.clear();
  }

  async #lookAtOne(name: string): Promise<void> {
    const pending = this.#pending.get(name);
    if (pending === undefined) return;
    const { keys, entryId } = pending;
    const { changes } = this.#history;
    const record = await readRecord(this.#redis, keys, entryId).catch((error: unknown) => {
      if (!isOfOtherType(error)) throw error;
      this.#settle(pending, { type: 'error', error: recordReplaced(pending.commandId, error) });
    });
    if (pending.settled !== undefined) return;
    if (record === undefined) return this.#recover(pending);
    pending.redisChanges = changes;
    if (record.state === 'ended')
      await this.#settleWith(pending, () => readResult(this.#redis, keys, entryId, record.event));
  }

  async #recover(pending: Pending): Promise<void> {
    const young = pending.ageMs < retentionOf(this.#redis, pending.keys.namespace) * YOUNG_SHARE;
    const mayBeLost = young && this.#history.changes > pending.redisChanges;
    if (mayBeLost && pending.resubmit !== undefined) return pending.resubmit();
    this.#settle(pending, { type: 'error', error: resultExpired(pending.commandId) });
  }

  async #settleWith(pending: Pending, read: () => Promise<WireResult>): Promise<void> {
    try {
      this.#settle(pending, { type: 'result', wire: await read() });
    } catch (error) {
      // While Redis is down the entry stays pending, and the next look reads it again.
      if (isShellfleetError(error) && error.code !== 'QUEUE_UNAVAILABLE')
        this.#settle(pending, { type: 'error', error });
    }
  }

  #settle(pending: Pending, settled: Settled): void {
    pending.settle(settled);
    this.forget(pending);
  }

  async #lookOnce(): Promise<void> {
    let lines = this.#acceptedBySession();
    let others = this.#nextOthers(lines);
    for (let from = 0, to = 1; lines.length > 0; [from, to] = [to, Math.min(2 * to, to + MOST_AT_ONCE)]) {
      const some = lines.flatMap((line) => line.slice(from, to)).concat(others);
      for (let at = 0; at < some.length; at += MOST_AT_ONCE) await this.lookAt(some.slice(at, at + MOST_AT_ONCE));
      lines = lines.filter((line) => line.length > to && line[to - 1]?.settled !== undefined);
      others = [];
    }
  }

  #acceptedBySession(): Pending[][] {
    const lines = new Map<string, Pending[]>();
    for (const pending of this.#pending.values()) {
      if (!pending.accepted) continue;
      const line = lines.get(pending.keys.session);
      if (line === undefined) lines.set(pending.keys.session, [pending]);
      else line.push(pending);
    }
    return [...lines.values()];
  }

  #nextOthers(lines: readonly Pending[][]): Pending[] {
    const others = lines.flatMap((line) => line.slice(1));
    if (this.#nextOther >= others.length) this.#nextOther = 0;
    const some = others.slice(this.#nextOther, this.#nextOther + OTHERS_PER_LOOK);
    this.#nextOther += OTHERS_PER_LOOK;
    return some;
  }
}

/** Tells whether the key has a value of another type, which something else has written. No Result ever comes of it. */
function isOfOtherType(error: unknown): boolean {
  return isShellfleetError(error) && error.cause instanceof Error && error.cause.message.startsWith('WRONGTYPE');
}

function recordReplaced(commandId: string, cause: unknown): ShellfleetError {
  const message = `Something other than Shellfleet has replaced the record of command ${commandId} in Redis, so its Result cannot be read.`;
  return new ShellfleetError('INTERNAL', message, { commandId }, { cause });
}

/** Returns a key for the entry. A session id contains no newline, so the keys are unique. */
const nameOf = (session: string, entryId: string) => `${session}\n${entryId}`;
