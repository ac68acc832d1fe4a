import type { Appended, Fenced } from '@shellfleet/mailbox';
import { type OutputEntry, ShellfleetError, type StreamName } from '@shellfleet/protocol';
import type { CommandLog } from '../host-log/host-log.ts';
import type { CleanOutput } from '../output/clean-output.ts';
import type { Released } from '../output/output-queue.ts';

// One entry's output, from the keeper to where it is stored.
//
// S1. A byte is acknowledged to the keeper only when it is stored: in the session's stream, or, over its budget, in the host's log
//     (or nowhere, where the log takes nothing: it was omitted from the stream, and counted there, in any case).
// S2. One append at a time; what comes meanwhile waits, and past a bound the keeper is not read any more.
// S3. What is still unstored when the entry ends rides in its finish.
// S4. The log comes after the stream: an adopter takes what it finds there for what follows the stream's last.

const PAUSE_ABOVE_BYTES = 1 << 20;
const RESUME_BELOW_BYTES = 1 << 18;
/** Redacting takes time, and other sessions wait meanwhile: after so much of one command's output they have their turn. */
const MOST_A_TURN_BYTES = 1 << 16;
/** Beside others, what nobody follows any more, because the stream does not carry it, rests so many times as long as it worked. */
const REST_OVER_BUDGET = 5;
/** The end of a short command comes right behind its output: waiting this long for it saves a call, and 64 KiB are worth one. */
const SETTLE_MS = 2;
const WORTH_A_CALL_BYTES = 1 << 16;
/** Output that a finish may carry; more is appended first. */
const MOST_IN_FINISH_BYTES = 1 << 18;

export interface OutputStoreDeps {
  clean: CleanOutput;
  log: CommandLog;
  /** The log takes no more: what it should have held is counted as omitted, as the stream says already. */
  onLogFailed(error: unknown): void;
  /** Repeats until Redis answers. */
  append(entries: readonly OutputEntry[]): Promise<Appended | Fenced>;
  ack(stream: StreamName, offset: number): void;
  pause(): void;
  resume(): void;
  /** Something else runs on this host now. */
  othersRun(): boolean;
  /** The entry is not ours any more, or the mailbox and the keeper disagree. */
  onLost(reason: string): void;
}

export class OutputStore {
  readonly #deps: OutputStoreDeps;
  #flushing: Promise<void> | undefined;
  #settle: (() => void) | undefined;
  readonly #pausedFor = new Set<'room' | 'others'>();
  /** Since other sessions had their turn. */
  #turnBytes = 0;
  #turnMs = 0;
  #ending = false;
  #lost = false;
  #failure: unknown;

  constructor(deps: OutputStoreDeps) {
    this.#deps = deps;
  }

  push(stream: StreamName, offset: number, bytes: Uint8Array): void {
    // The way to the end is kept open, so what is no longer wanted is read all the same.
    if (this.#lost) return;
    const { clean } = this.#deps;
    if (offset > clean.received[stream]) clean.lose(stream, offset);
    const from = performance.now();
    clean.push(stream, offset, bytes);
    this.#turnMs += performance.now() - from;
    if (clean.waitingBytes > PAUSE_ABOVE_BYTES) this.#pause('room');
    this.#shareTurn(bytes.byteLength);
    this.#flushing ??= this.#settled()
      .then(() => this.#flush())
      .catch((error: unknown) => this.#fail(error));
    if (clean.waitingBytes > WORTH_A_CALL_BYTES) this.#settle?.();
  }

  /** Nothing more comes. Stores what is too much for the finish, and returns the rest. Throws what kept it from storing. */
  async end(): Promise<OutputEntry[]> {
    this.#ending = true;
    this.#settle?.();
    await this.#flushing;
    if (this.#failure !== undefined) throw this.#failure;
    const { clean } = this.#deps;
    clean.end();
    while (clean.waitingBytes > MOST_IN_FINISH_BYTES && !this.#lost) await this.#store(clean.release());
    let entries: OutputEntry[] = [];
    while (clean.isWaiting) {
      const released = clean.release();
      entries.push(...released.entries);
      // Whoever prints nothing more needs no acknowledgement.
      if (released.overflow.length === 0) continue;
      await this.#store({ ...released, entries });
      entries = [];
    }
    return [...entries, ...clean.closingEntries()];
  }

  #shareTurn(bytes: number): void {
    if (this.#turnBytes === 0) setImmediate(() => this.#endTurn());
    this.#turnBytes += bytes;
    if (this.#turnBytes > MOST_A_TURN_BYTES) this.#pause('others');
  }

  #endTurn(): void {
    const restMs = REST_OVER_BUDGET * this.#turnMs;
    this.#turnBytes = 0;
    this.#turnMs = 0;
    const { clean, othersRun } = this.#deps;
    if (clean.isOverBudget && !this.#ending && othersRun()) setTimeout(() => this.#resume('others'), restMs);
    else this.#resume('others');
  }

  #pause(why: 'room' | 'others'): void {
    if (this.#pausedFor.size === 0) this.#deps.pause();
    this.#pausedFor.add(why);
  }

  #resume(why: 'room' | 'others'): void {
    if (this.#pausedFor.delete(why) && this.#pausedFor.size === 0) this.#deps.resume();
  }

  /** Resolves when output has come to rest for now. */
  #settled(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, SETTLE_MS);
      this.#settle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #flush(): Promise<void> {
    const { clean } = this.#deps;
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
        if (stored.type === 'misplaced') {
          const message = 'The output of a command does not follow what the mailbox has of it.';
          throw new ShellfleetError('INTERNAL', message, { stored: stored.offsets });
        }
        this.#lose(stored.type);
        return;
      }
    }
    await this.#log(released);
    for (const stream of STREAMS) {
      const offset = released.upTo[stream];
      if (offset !== undefined) this.#deps.ack(stream, offset);
    }
  }

  /** A full disk of the host is no reason to end a command. */
  async #log({ overflow }: Released): Promise<void> {
    await this.#deps.log.append(overflow).catch((error: unknown) => this.#deps.onLogFailed(error));
  }

  #fail(error: unknown): void {
    this.#failure = error;
    this.#lose('failed');
  }

  /** Nothing more is stored. A keeper that is not read could not say the end either. */
  #lose(reason: string): void {
    this.#lost = true;
    this.#deps.onLost(reason);
    this.#resume('room');
  }
}

const STREAMS: readonly StreamName[] = ['stdout', 'stderr'];

/** Stored by this call, or by an earlier one whose reply was lost: then the stored offsets are already past the entries. */
function isStored(stored: Appended | Fenced, entries: readonly OutputEntry[]): boolean {
  if (stored.type === 'stored') return true;
  return stored.type === 'misplaced' && entries.every((entry) => entry.rawTo <= stored.offsets[entry.stream]);
}
