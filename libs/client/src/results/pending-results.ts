import { abortable } from '@shellfleet/concurrency';
import { type InboxNotice, readRecord } from '@shellfleet/mailbox';
import {
  isShellfleetError,
  type SessionKeys,
  type ShellfleetError,
  toCommandId,
  type WireResult,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { parseWireResult, readResult, resultExpired } from './read-result.ts';

// R1. Every accepted entry that this process waits for settles once: with its Result, or with why there is none.
// R2. The inbox is a hint. What it misses is found by reading the records, in turn, on one timer for all of them.
// R3. An entry of this process whose record is gone is submitted again, under the same id: Redis lost it.

const LOOK_AGAIN_MS = 3_000;
/** Entries of a session end in order, so one look reads the oldest of each, and of the others, which a cancel may end, some in turn. */
const OTHERS_A_LOOK = 100;

export type Settled = { type: 'result'; wire: WireResult } | { type: 'error'; error: ShellfleetError };

/** One entry that somebody in this process may wait for. */
export class Pending {
  readonly keys: SessionKeys;
  readonly entryId: string;
  /** False until Redis has said that it took the entry: a missing record means nothing before that. */
  accepted = false;
  /** Submits it again; absent for entries of other processes. */
  resubmit?: () => Promise<void>;
  settled?: Settled;
  readonly #end = Promise.withResolvers<Settled>();

  constructor(keys: SessionKeys, entryId: string) {
    this.keys = keys;
    this.entryId = entryId;
  }

  get commandId(): string {
    return toCommandId(this.keys.session, this.entryId);
  }

  settle(settled: Settled): void {
    this.settled ??= settled;
    this.#end.resolve(this.settled);
  }

  async result(signal?: AbortSignal): Promise<WireResult> {
    const settled = await abortable(this.#end.promise, signal);
    if (settled.type === 'error') throw settled.error;
    return settled.wire;
  }
}

/** An entry that Redis has accepted. */
export interface Sent {
  pending: Pending;
  /** The idempotency key stood for an entry that was accepted before; `pending` is that one. */
  deduplicated: boolean;
}

export class PendingResults {
  readonly #redis: Redis;
  readonly #pending = new Map<string, Pending>();
  #timer?: NodeJS.Timeout;
  #looking = false;
  #turn = 0;
  #closed?: ShellfleetError;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** The same object for everybody in this process who waits for the same entry. */
  expect(keys: SessionKeys, entryId: string): Pending {
    const name = nameOf(keys.session, entryId);
    const known = this.#pending.get(name);
    if (known !== undefined) return known;
    const pending = new Pending(keys, entryId);
    if (this.#closed !== undefined) {
      pending.settle({ type: 'error', error: this.#closed });
      return pending;
    }
    this.#pending.set(name, pending);
    this.#timer ??= setInterval(() => void this.look().catch(() => {}), LOOK_AGAIN_MS).unref();
    return pending;
  }

  /** The entry was not accepted after all. */
  forget(pending: Pending): void {
    this.#pending.delete(nameOf(pending.keys.session, pending.entryId));
    if (this.#pending.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** What the inbox said: the Result itself, or the event that holds it. */
  async notice({ session, entryId, event, result: json }: InboxNotice): Promise<void> {
    const pending = this.#pending.get(nameOf(session, entryId));
    if (pending === undefined) return;
    await this.#settleWith(pending, async () =>
      json === '' ? readResult(this.#redis, pending.keys, entryId, event) : parseWireResult(json, pending.commandId),
    );
  }

  /** Looks at the records of some that are pending. */
  async look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      await this.lookAt(this.#choose());
    } finally {
      this.#looking = false;
    }
  }

  async lookAt(some: readonly Pending[]): Promise<void> {
    await Promise.all(
      some.map(async (pending) => {
        const { keys, entryId } = pending;
        const record = await readRecord(this.#redis, keys, entryId);
        if (pending.settled !== undefined) return;
        if (record === undefined) await this.#recover(pending);
        else if (record.state === 'ended')
          await this.#settleWith(pending, () => readResult(this.#redis, keys, entryId, record.event));
      }),
    );
  }

  /** Entries that are waited for now or later settle with the error. */
  close(error: ShellfleetError): void {
    this.#closed = error;
    clearInterval(this.#timer);
    for (const pending of this.#pending.values()) pending.settle({ type: 'error', error });
    this.#pending.clear();
  }

  async #recover(pending: Pending): Promise<void> {
    if (pending.resubmit !== undefined) return pending.resubmit();
    this.#settle(pending, { type: 'error', error: resultExpired(pending.commandId) });
  }

  async #settleWith(pending: Pending, read: () => Promise<WireResult>): Promise<void> {
    try {
      this.#settle(pending, { type: 'result', wire: await read() });
    } catch (error) {
      // While Redis is down the next look tries again.
      if (isShellfleetError(error) && error.code !== 'QUEUE_UNAVAILABLE')
        this.#settle(pending, { type: 'error', error });
    }
  }

  #settle(pending: Pending, settled: Settled): void {
    pending.settle(settled);
    this.forget(pending);
  }

  #choose(): Pending[] {
    const oldest = new Map<string, Pending>();
    const others: Pending[] = [];
    for (const pending of this.#pending.values()) {
      if (!pending.accepted) continue;
      if (oldest.has(pending.keys.session)) others.push(pending);
      else oldest.set(pending.keys.session, pending);
    }
    if (this.#turn >= others.length) this.#turn = 0;
    const some = others.slice(this.#turn, this.#turn + OTHERS_A_LOOK);
    this.#turn += OTHERS_A_LOOK;
    return [...oldest.values(), ...some];
  }
}

/** A session id holds no newline. */
const nameOf = (session: string, entryId: string) => `${session}\n${entryId}`;
