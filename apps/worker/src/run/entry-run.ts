import type { Entry, StoredOutput } from '@shellfleet/mailbox';
import type { OutputEntry, WireResult } from '@shellfleet/protocol';
import type { AttachedReader } from './attached-reader.ts';

/** One entry on this host, from started to finished: how it begins, and the calls that reach it while it runs. */
export class EntryRun {
  readonly entry: Entry;
  /**
   * How the entry begins here. It is resumed when an earlier owner, or an earlier process of this worker, has started
   * it and its shell is alive.
   */
  readonly from: 'start' | 'resume';
  /**
   * Prepares the shell that has replaced the session's shell before the entry began. Resolves to false when there is no
   * shell, or the session is lost.
   */
  readonly makeShellReady: () => Promise<boolean>;
  /** The output of which Redis has confirmed that it is stored. */
  stored: StoredOutput;
  /** The reader to which the entry is throttled, if its submitter attached one. */
  reader: AttachedReader | undefined;
  #isCancelled = false;
  #onCancel: (() => void) | undefined;
  #onInput: (() => void) | undefined;

  constructor(entry: Entry, from: 'start' | 'resume', makeShellReady: () => Promise<boolean>) {
    this.entry = entry;
    this.from = from;
    this.makeShellReady = makeShellReady;
    this.stored = { ...entry.offsets, seq: entry.seq };
  }

  /** A caller has cancelled the entry. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#onCancel?.();
    this.reader?.close();
  }

  /**
   * Calls `listener` when the entry is cancelled from now on. There is one listener at a time, and no AbortSignal:
   * those are slow.
   */
  onCancel(listener: (() => void) | undefined): void {
    this.#onCancel = listener;
  }

  /** Something was written to the entry's open stdin. */
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
  output: OutputEntry[];
  /** The end of what a command printed, redacted, whatever part of it the Result keeps. */
  lastOutput?: () => string;
  /** Answer of a file operation, as JSON. */
  answer?: string;
  /** The audit has this end already. */
  noted?: true;
}
