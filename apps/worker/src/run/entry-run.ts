import type { Entry, StoredOutput } from '@shellfleet/mailbox';
import type { OutputEntry, WireResult } from '@shellfleet/protocol';
import type { AttachedReader } from './attached-reader.ts';

/** An entry that is about to get its Result. */
export interface EndingEntry {
  readonly entry: Entry;
  /** Whether the step that stores the Result may start the next entry. */
  mayTakeNext(): boolean;
}

/** What the session does for an entry that runs. */
interface RunningSession {
  mayTakeNext(): boolean;
  /** Prepares the shell that has replaced the session's shell before the entry began. False: there is no shell, or the session is lost. */
  makeShellReady(): Promise<boolean>;
}

/** One entry on this host, from started to finished: how it begins, and the calls that reach it while it runs. */
export class EntryRun implements EndingEntry {
  readonly entry: Entry;
  /** `resume`: an earlier owner, or an earlier process of this worker, has started it, and its shell is alive. */
  readonly from: 'start' | 'resume';
  readonly mayTakeNext: () => boolean;
  readonly makeShellReady: () => Promise<boolean>;
  /** The output of which Redis has confirmed that it is stored. */
  stored: StoredOutput;
  /** The reader to which the entry is throttled, if its submitter attached one. */
  reader: AttachedReader | undefined;
  #isCancelled = false;
  #onCancel: (() => void) | undefined;
  #onInput: (() => void) | undefined;

  constructor(entry: Entry, from: 'start' | 'resume', { mayTakeNext, makeShellReady }: RunningSession) {
    this.entry = entry;
    this.from = from;
    this.mayTakeNext = mayTakeNext;
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

  /** `listener` is called when the entry is cancelled from now on. There is one listener at a time, and no AbortSignal: those are slow. */
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
  /** output that is not stored yet */
  output: OutputEntry[];
  /** The end of what a command printed, redacted, whatever part of it the Result keeps. */
  lastOutput?: () => string;
  /** the answer of a file operation, as JSON */
  answer?: string;
  /** The audit has this end already. */
  noted?: true;
}
