import { setTimeout as delay } from 'node:timers/promises';
import type { HostMailbox } from '@shellfleet/mailbox';
import type { StoredChunk, StreamName } from '@shellfleet/protocol';
import type { Logger } from '../log/logger.ts';
import { CleanOutput } from '../output/clean-output.ts';
import type { CreateRedactor } from '../output/redactor.ts';
import { LateOutputOfEntry } from './late-entry.ts';

// Stores late output (printed by processes that outlived their entry) in the session's stream.
// LATE-OUTPUT-1. Late output follows the terminal event of its entry. It is redacted like the entry's own output, and
//                arrives in order, each byte once.
// LATE-OUTPUT-2. Late output uses the rest of the entry's budget in the stream. Bytes over the budget are counted by
//                offset.
// LATE-OUTPUT-3. Late output delays nothing else: memory for it is bounded, and reading from the keeper never pauses
//                for it.

/** Maximum of a session's bytes in memory. They reach it only while Redis is slow or down. */
const MOST_WAITING_BYTES = 1 << 20;
/** Time for which output is collected, so that a process which prints often causes few calls. */
const GATHER_MS = 100;
/** Interval of reports about bytes over the budget. */
const REPORT_GAPS_MS = 60_000;
/** Maximum of entries with late output. The keeper follows no more of them. */
const MOST_ENTRIES = 512;

export interface LateOutputDeps {
  mailbox: Pick<HostMailbox, 'addLate'>;
  /** Budget of an entry in the stream, including its own output. */
  streamBytes: number;
  createRedactor: CreateRedactor;
  /** Aborts when this host must not write to the session any more. */
  signal: AbortSignal;
  logger: Logger;
}

export class LateOutput {
  readonly #deps: LateOutputDeps;
  readonly #entries = new Map<string, LateOutputOfEntry>();
  readonly #reportedGapsAt = new Map<string, number>();
  /** Serializes the calls, since each continues at the position that the previous one stored. */
  #calls: Promise<unknown> = Promise.resolve();
  #gathering = false;

  constructor(deps: LateOutputDeps) {
    this.#deps = deps;
  }

  /** Receives late output of an entry. Empty bytes end the stream. */
  push(entryId: string, stream: StreamName, offset: number, bytes: Uint8Array): void {
    if (bytes.byteLength === 0) this.#entries.get(entryId)?.endStream(stream);
    else this.#entryOf(entryId).push(stream, offset, bytes, this.#hasRoomFor(bytes.byteLength));
    this.#storeSoon();
  }

  /** Stores the received output when the processes are gone or left to the next owner. Never rejects. */
  async end(): Promise<void> {
    if (this.#entries.size === 0) return;
    for (const entry of this.#entries.values()) entry.end();
    this.#calls = this.#calls.then(() => this.#storeAll());
    await this.#calls;
  }

  #hasRoomFor(bytes: number): boolean {
    let waiting = bytes;
    for (const entry of this.#entries.values()) waiting += entry.waitingBytes;
    return waiting <= MOST_WAITING_BYTES;
  }

  #entryOf(entryId: string): LateOutputOfEntry {
    const known = this.#entries.get(entryId);
    if (known !== undefined) return known;
    // The end of the oldest entry's output was lost with a connection.
    const [oldest] = this.#entries.size < MOST_ENTRIES ? [] : this.#entries.keys();
    if (oldest !== undefined) this.#forget(oldest);
    const entry = new LateOutputOfEntry();
    this.#entries.set(entryId, entry);
    return entry;
  }

  #storeSoon(): void {
    if (this.#gathering || this.#entries.size === 0) return;
    this.#gathering = true;
    this.#calls = this.#calls
      .then(() => delay(GATHER_MS, undefined, { ref: false }))
      .then(() => {
        this.#gathering = false;
        return this.#storeAll();
      })
      .then((hasMore) => {
        if (hasMore) this.#storeSoon();
      });
  }

  /** Returns whether something is left to store later. Never rejects. */
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

  /** Stores output of one entry. Returns `over` if no more will be stored, `waits` until its Result is stored. */
  async #store(entryId: string, entry: LateOutputOfEntry): Promise<'over' | 'waits' | 'goes-on'> {
    if (!entry.placed) {
      const added = await this.#deps.mailbox.addLate(entryId, []);
      if (added.type === 'not-ended') return 'waits';
      if (!('position' in added)) return 'over';
      const { outcome, carriedBytes } = added.position;
      // If the command's output was withheld, its late output is too.
      const left = outcome === 'blocked' ? 0 : this.#deps.streamBytes - carriedBytes;
      const { createRedactor } = this.#deps;
      const chain = left > 0 ? new CleanOutput({ createRedactor, streamBytes: left }) : undefined;
      entry.place(added.position, chain);
    }
    do {
      if (!(await this.#addAll(entryId, entry, entry.release()))) return 'over';
    } while (entry.waitingBytes > 0);
    if (entry.ended || (entry.isOverBudget && this.#mayReportGaps(entryId))) {
      if (!(await this.#addAll(entryId, entry, entry.gaps()))) return 'over';
    }
    return entry.ended ? 'over' : 'goes-on';
  }

  #mayReportGaps(entryId: string): boolean {
    const now = performance.now();
    if (now - (this.#reportedGapsAt.get(entryId) ?? Number.NEGATIVE_INFINITY) < REPORT_GAPS_MS) return false;
    this.#reportedGapsAt.set(entryId, now);
    return true;
  }

  async #addAll(entryId: string, entry: LateOutputOfEntry, entries: StoredChunk[]): Promise<boolean> {
    if (entries.length === 0) return true;
    const added = await this.#deps.mailbox.addLate(entryId, entries);
    // An earlier call with a lost reply has stored these pieces.
    if (!('position' in added)) return false;
    entry.stored(added.position);
    return true;
  }

  #forget(entryId: string): void {
    this.#entries.delete(entryId);
    this.#reportedGapsAt.delete(entryId);
  }
}
