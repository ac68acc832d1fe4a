import type { Appended, Fenced } from '@shellfleet/mailbox';
import { type OutputEntry, STREAM_NAMES, type StreamName } from '@shellfleet/protocol';
import type { CleanOutput } from '../output/clean-output.ts';
import { freeBytes } from '../output/free-bytes.ts';
import type { Released } from '../output/output-queue.ts';
import type { CommandLog } from '../overflow-log/overflow-logs.ts';
import type { AttachedReader } from './attached-reader.ts';

// Stores the output of one entry.
//
// STORE-1. A byte is acknowledged to the keeper only after it is stored: in the session's stream, or, over the budget, in the overflow log. When
//          the log takes nothing, it is acknowledged too: the stream has counted it as omitted.
// STORE-2. One append at a time. Output that arrives meanwhile is queued, and over a limit reading from the keeper pauses (backpressure).
// STORE-3. Output that is not stored when the entry ends is stored by the step that finishes the entry.
// STORE-4. The stream is written before the log: a host that adopts the entry continues the stream with the log.
// STORE-5. While an attached reader holds output back, what is over the budget is stored and not acknowledged: so the keeper stops reading,
//          and the connection to it stays usable for everything else.

const PAUSE_ABOVE_BYTES = 1 << 20;
const RESUME_BELOW_BYTES = 1 << 18;
/** Redaction occupies the processor: after so many bytes of one command, other sessions get a time slice. */
const TIME_SLICE_BYTES = 1 << 16;
/** While other entries run, output over the budget of the stream is throttled: it pauses so many times as long as its slice took. */
const THROTTLE_FACTOR = 5;
/** The end of a short command follows its output at once: waiting this long for it saves an append, unless 64 KiB have arrived. */
const SETTLE_MS = 2;
const WORTH_AN_APPEND_BYTES = 1 << 16;
/** Output that a finish may carry; more is appended first. */
const MOST_IN_FINISH_BYTES = 1 << 18;

export interface OutputStoreDeps {
  clean: CleanOutput;
  log: CommandLog;
  /** The log cannot be written: the bytes are omitted, as the stream has counted them. */
  onLogFailed(error: unknown): void;
  /** Retries while Redis is down. */
  append(entries: readonly OutputEntry[]): Promise<Appended | Fenced>;
  ack(stream: StreamName, offset: number): void;
  pause(): void;
  resume(): void;
  /** Whether another entry runs on this host now. */
  othersRun(): boolean;
  /** The reader to which the command is throttled, if its submitter attached one. */
  reader?: AttachedReader | undefined;
  /** Nothing more can be stored: another host owns the session, or the mailbox and the keeper disagree. */
  onLost(reason: string): void;
}

/** Redis came back without output that it had stored, and the keeper holds it no more: what follows cannot be stored. */
export class OutputForgotten extends Error {}

export class OutputStore {
  readonly #deps: OutputStoreDeps;
  #flushing: Promise<void> | undefined;
  /** Until the output that is to be stored is not followed by more at once. */
  #settling: NodeJS.Timeout | undefined;
  readonly #pausedFor = new Set<'room' | 'others'>();
  /** In the current time slice. */
  #sliceBytes = 0;
  #sliceMs = 0;
  #ending = false;
  #lost = false;
  #failure: unknown;
  /** Raw bytes of each stream that are stored. */
  readonly #stored: Partial<Record<StreamName, number>> = {};

  constructor(deps: OutputStoreDeps) {
    this.#deps = deps;
    if (deps.reader !== undefined) deps.reader.onRelease = () => this.acknowledge();
  }

  /** Acknowledges what is stored, unless the reader holds it back. Also for a new connection: the keeper may have missed it. */
  acknowledge(offsets: Partial<Record<StreamName, number>> = this.#stored): void {
    if (this.#deps.reader?.holdsBack) return;
    for (const stream of STREAM_NAMES) {
      const offset = offsets[stream];
      if (offset !== undefined) this.#deps.ack(stream, offset);
    }
  }

  /** What an earlier process of this worker has stored. */
  restore(stored: Readonly<Record<StreamName, number>>): void {
    Object.assign(this.#stored, stored);
  }

  push(stream: StreamName, offset: number, bytes: Uint8Array): void {
    // Output is read and dropped, because the end of the entry comes after it.
    if (this.#lost) return;
    const { clean } = this.#deps;
    if (offset > clean.received[stream]) clean.lose(stream, offset);
    const from = performance.now();
    clean.push(stream, offset, bytes);
    this.#sliceMs += performance.now() - from;
    if (clean.waitingBytes > PAUSE_ABOVE_BYTES) this.#pause('room');
    this.#countInSlice(bytes.byteLength);
    if (this.#flushing === undefined) this.#settling ??= setTimeout(() => this.#startFlush(), SETTLE_MS);
    if (this.#settling !== undefined && clean.waitingBytes > WORTH_AN_APPEND_BYTES) this.#startFlush();
  }

  /** The entry has ended. Stores the output over the limit of a finish, and returns the rest. Throws the error that prevented storing. */
  async end(): Promise<OutputEntry[]> {
    this.#ending = true;
    clearTimeout(this.#settling);
    if (this.#flushing !== undefined) await this.#flushing;
    if (this.#failure !== undefined) throw this.#failure;
    const { clean } = this.#deps;
    clean.end();
    while (clean.waitingBytes > MOST_IN_FINISH_BYTES && !this.#lost) await this.#store(clean.release());
    let entries: OutputEntry[] = [];
    while (clean.isWaiting) {
      const released = clean.release();
      entries.push(...released.entries);
      // No acknowledgement: the keeper holds nothing of an entry that has ended.
      if (released.overflow.length === 0) continue;
      await this.#store({ ...released, entries });
      entries = [];
    }
    return [...entries, ...clean.closingEntries()];
  }

  #countInSlice(bytes: number): void {
    if (this.#sliceBytes === 0) setImmediate(() => this.#endSlice());
    this.#sliceBytes += bytes;
    if (this.#sliceBytes > TIME_SLICE_BYTES) this.#pause('others');
  }

  #endSlice(): void {
    const pauseMs = THROTTLE_FACTOR * this.#sliceMs;
    this.#sliceBytes = 0;
    this.#sliceMs = 0;
    const { clean, othersRun } = this.#deps;
    if (clean.isOverBudget && !this.#ending && othersRun()) setTimeout(() => this.#resume('others'), pauseMs);
    else this.#resume('others');
  }

  #pause(why: 'room' | 'others'): void {
    if (this.#pausedFor.size === 0) this.#deps.pause();
    this.#pausedFor.add(why);
  }

  #resume(why: 'room' | 'others'): void {
    if (this.#pausedFor.delete(why) && this.#pausedFor.size === 0) this.#deps.resume();
  }

  #startFlush(): void {
    clearTimeout(this.#settling);
    this.#settling = undefined;
    this.#flushing = this.#flush().catch((error: unknown) => this.#fail(error));
  }

  async #flush(): Promise<void> {
    const { clean } = this.#deps;
    await undefined; // `#flushing` is set before this ends
    while (clean.isWaiting && !this.#lost && !(this.#ending && clean.waitingBytes <= MOST_IN_FINISH_BYTES)) {
      await this.#store(clean.release());
      if (clean.waitingBytes < RESUME_BELOW_BYTES) this.#resume('room');
    }
    this.#flushing = undefined;
  }

  async #store(released: Released): Promise<void> {
    if (released.entries.length > 0) {
      const stored = await this.#deps.append(released.entries);
      if (!isStored(stored, released.entries)) {
        if (stored.type === 'misplaced') throw new OutputForgotten();
        this.#lose(stored.type);
        return;
      }
    }
    await this.#log(released);
    for (const { stream, bytesBefore, data } of released.overflow) {
      this.#deps.reader?.stored(stream, bytesBefore + data.byteLength);
      freeBytes(data);
    }
    Object.assign(this.#stored, released.upTo);
    this.acknowledge(released.upTo);
  }

  /** A full disk does not end a command. */
  async #log({ overflow }: Released): Promise<void> {
    await this.#deps.log.append(overflow).catch((error: unknown) => this.#deps.onLogFailed(error));
  }

  #fail(error: unknown): void {
    this.#failure = error;
    this.#lose('failed');
  }

  /** Stores nothing more and resumes reading: the end of the entry comes over the same connection. */
  #lose(reason: string): void {
    this.#lost = true;
    this.#deps.onLost(reason);
    this.#resume('room');
  }
}

/** Stored by this call, or by an earlier one whose reply was lost: then the stored offsets are at or past the entries. */
function isStored(stored: Appended | Fenced, entries: readonly OutputEntry[]): boolean {
  if (stored.type === 'stored') return true;
  return stored.type === 'misplaced' && entries.every((entry) => entry.rawTo <= stored.offsets[entry.stream]);
}
