import { setTimeout as delay } from 'node:timers/promises';
import { addLate, type Owner, retryWhileRedisIsDown } from '@shellfleet/mailbox';
import type { OutputEntry, StreamName } from '@shellfleet/protocol';
import type { Logger } from 'pino';
import { createLateChain } from '../output/output-chains.ts';
import type { CreateRedactor } from '../output/redactor.ts';
import { LateEntry } from './late-entry.ts';

// What processes that outlived their entry print, on its way into the session's stream.
//
// L1. It stands behind the terminal event of its entry, cleaned as the entry's own output was, in order, each byte once.
// L2. The stream carries of it what the entry left of its budget. What it does not carry is counted by offset, never silently dropped.
// L3. It holds nothing up: little of it waits in memory, and the keeper's connection is never paused for it.

/** Of one session. More comes only while Redis is slow or away. */
const MOST_WAITING_BYTES = 1 << 20;
/** Calls are few, however a process dribbles. */
const GATHER_MS = 100;
/** How often what is over the budget is said, while it goes on. */
const SAY_GAPS_MS = 60_000;
/** Entries with processes that print. The keeper knows no more at a time. */
const MOST_ENTRIES = 512;

export interface LateOutputDeps {
  owner: Owner;
  /** Of an entry, with its own output. */
  streamBytes: number;
  createRedactor: CreateRedactor;
  /** Aborts when this host must not write the session any more. */
  signal: AbortSignal;
  onFenced(): void;
  logger: Logger;
}

export class LateOutput {
  readonly #deps: LateOutputDeps;
  readonly #entries = new Map<string, LateEntry>();
  readonly #saidGapsAt = new Map<string, number>();
  /** One call at a time: each begins where the one before has ended. */
  #line: Promise<unknown> = Promise.resolve();
  #gathering = false;

  constructor(deps: LateOutputDeps) {
    this.#deps = deps;
  }

  /** Output of an entry that has ended; empty when its stream is at the end. */
  push(entryId: string, stream: StreamName, offset: number, bytes: Uint8Array): void {
    if (bytes.byteLength === 0) this.#entries.get(entryId)?.endStream(stream);
    else this.#entryOf(entryId).push(stream, offset, bytes, this.#hasRoomFor(bytes.byteLength));
    this.#storeSoon();
  }

  /** The processes are gone, or are left to the next owner: what they said is stored. Never rejects. */
  async end(): Promise<void> {
    if (this.#entries.size === 0) return;
    for (const entry of this.#entries.values()) entry.end();
    this.#line = this.#line.then(() => this.#storeAll());
    await this.#line;
  }

  #hasRoomFor(bytes: number): boolean {
    let waiting = bytes;
    for (const entry of this.#entries.values()) waiting += entry.waitingBytes;
    return waiting <= MOST_WAITING_BYTES;
  }

  #entryOf(entryId: string): LateEntry {
    const known = this.#entries.get(entryId);
    if (known !== undefined) return known;
    // Its end was lost with a connection.
    const [oldest] = this.#entries.size < MOST_ENTRIES ? [] : this.#entries.keys();
    if (oldest !== undefined) this.#forget(oldest);
    const entry = new LateEntry();
    this.#entries.set(entryId, entry);
    return entry;
  }

  #storeSoon(): void {
    if (this.#gathering || this.#entries.size === 0) return;
    this.#gathering = true;
    this.#line = this.#line
      .then(() => delay(GATHER_MS, undefined, { ref: false }))
      .then(() => {
        this.#gathering = false;
        return this.#storeAll();
      })
      .then((hasMore) => {
        if (hasMore) this.#storeSoon();
      });
  }

  /** Returns whether something has to wait. Never rejects. */
  async #storeAll(): Promise<boolean> {
    let hasMore = false;
    for (const [entryId, entry] of this.#entries) {
      const stored = await this.#store(entryId, entry).catch((err: unknown) => {
        if (!this.#deps.signal.aborted) this.#deps.logger.warn({ err }, 'late-output.failed');
        return 'over' as const;
      });
      if (stored === 'over') this.#forget(entryId);
      hasMore ||= stored === 'waits' || entry.waitingBytes > 0;
    }
    return hasMore;
  }

  /** `over`: nothing more of it is stored. `waits`: its own end is not stored yet. */
  async #store(entryId: string, entry: LateEntry): Promise<'over' | 'waits' | 'goes-on'> {
    if (!entry.placed) {
      const added = await this.#add(entryId, []);
      if (added.type === 'fenced' || added.type === 'unknown') return 'over';
      if (added.type === 'not-ended') return 'waits';
      const { outcome, carriedBytes } = added.position;
      // Of a command whose output was withheld nothing is shown.
      const left = outcome === 'blocked' ? 0 : this.#deps.streamBytes - carriedBytes;
      entry.place(added.position, left > 0 ? createLateChain(this.#deps.createRedactor, left) : undefined);
    }
    do {
      if (!(await this.#addAll(entryId, entry, entry.release()))) return 'over';
    } while (entry.waitingBytes > 0);
    if (entry.ended || (entry.isOverBudget && this.#maySayGaps(entryId))) {
      if (!(await this.#addAll(entryId, entry, entry.gaps()))) return 'over';
    }
    return entry.ended ? 'over' : 'goes-on';
  }

  #maySayGaps(entryId: string): boolean {
    const now = performance.now();
    if (now - (this.#saidGapsAt.get(entryId) ?? Number.NEGATIVE_INFINITY) < SAY_GAPS_MS) return false;
    this.#saidGapsAt.set(entryId, now);
    return true;
  }

  async #addAll(entryId: string, entry: LateEntry, entries: OutputEntry[]): Promise<boolean> {
    if (entries.length === 0) return true;
    const added = await this.#add(entryId, entries);
    // Misplaced: an earlier arrival of this call has stored them.
    if (added.type !== 'stored' && added.type !== 'misplaced') return false;
    entry.stored(added.position);
    return true;
  }

  async #add(entryId: string, entries: OutputEntry[]) {
    const { owner, signal, onFenced } = this.#deps;
    const added = await retryWhileRedisIsDown(() => addLate(owner, entryId, entries), signal);
    if (added.type === 'fenced') onFenced();
    return added;
  }

  #forget(entryId: string): void {
    this.#entries.delete(entryId);
    this.#saidGapsAt.delete(entryId);
  }
}
