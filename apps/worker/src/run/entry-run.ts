import type { Entry, StoredOutput } from '@shellfleet/mailbox';
import type { StoredChunk, WireResult } from '@shellfleet/protocol';
import { RecentRate } from '../host/recent-rate.ts';
import type { AttachedReader } from './attached-reader.ts';

/** One entry on this host, from started to finished. */
export class EntryRun {
  readonly entry: Entry;
  /** How the entry begins here. It resumes if it was started earlier and its shell is alive. */
  readonly from: 'start' | 'resume';
  /** Prepares a shell that replaced the session's shell before the entry began. Resolves to false if there is none. */
  readonly makeShellReady: () => Promise<boolean>;
  /** Output that Redis has confirmed as stored. */
  stored: StoredOutput;
  /** Reader to which the entry is throttled, if its submitter attached one. */
  reader: AttachedReader | undefined;
  /** Why this host itself cancelled the entry. Undefined if a caller did, whose reason is in the mailbox. */
  cancelReason: string | undefined;
  #isCancelled = false;
  #onCancel: (() => void) | undefined;
  #onInput: (() => void) | undefined;

  constructor(entry: Entry, from: 'start' | 'resume', makeShellReady: () => Promise<boolean>) {
    this.entry = entry;
    this.from = from;
    this.makeShellReady = makeShellReady;
    this.stored = { ...entry.offsets, seq: entry.seq };
  }

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  cancel(reason?: string): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.cancelReason = reason;
    this.#onCancel?.();
    this.reader?.close();
  }

  /** Sets the only listener for a cancel from now on. AbortSignals are too slow for this. */
  onCancel(listener: (() => void) | undefined): void {
    this.#onCancel = listener;
  }

  /** Reports a write to the entry's open stdin. */
  wakeInput(): void {
    this.#onInput?.();
  }

  onInput(listener: () => void): void {
    this.#onInput = listener;
  }
}

/** How an entry ended, before that is stored. */
export interface EntryResult {
  result: WireResult;
  /** Output that is not stored yet. */
  output: StoredChunk[];
  /** Returns the redacted end of a command's output, independently of what the Result keeps. */
  lastOutput?: () => string;
  /** Answer of a file operation, as JSON. */
  answer?: string;
  /** Set when the audit has this end already. */
  noted?: true;
}

/** Time for which a session counts as running after a command's end, since another command probably follows. */
const RECENT_MS = 250;

/** The running entries of this host. Their number tells whether an entry must share the processor. */
export class RunningEntries {
  readonly #running = new Set<string>();
  /** Commands that ended on this host. */
  readonly endedCommands = new RecentRate();
  #endedAt = Number.NEGATIVE_INFINITY;

  async during<T>(entryId: string, run: () => Promise<T>): Promise<T> {
    this.#running.add(entryId);
    try {
      return await run();
    } finally {
      this.#running.delete(entryId);
      this.#endedAt = performance.now();
    }
  }

  get count(): number {
    return this.#running.size;
  }

  /** Whether another entry runs, or ran until just now. */
  get hasOthers(): boolean {
    return this.#running.size > 1 || performance.now() - this.#endedAt < RECENT_MS;
  }
}
