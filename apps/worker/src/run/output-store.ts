import type { Appended, Fenced, OwnedCalls } from '@shellfleet/mailbox';
import { STREAM_NAMES, type StoredChunk, type StreamName } from '@shellfleet/protocol';
import { isRedisFull } from '@shellfleet/redis';
import type { CleanOutput } from '../output/clean-output.ts';
import { freeBytes } from '../output/free-bytes.ts';
import type { Released } from '../output/output-queue.ts';
import type { CommandLog } from '../overflow-log/overflow-logs.ts';
import type { AttachedReader } from './attached-reader.ts';

// Stores the output of one entry.
// STORE-1. A byte is acknowledged to the keeper only after it is stored: in the session's stream or, over the budget,
//          in the overflow log. If the log fails, the byte is acknowledged too, and the stream counts it as omitted.
// STORE-2. One append at a time. Other output is queued, and above a limit reading from the keeper pauses
//          (backpressure).
// STORE-3. Output that is not stored when the entry ends is stored by the step that finishes the entry.
// STORE-4. The stream is written before the log: a host that adopts the entry continues the stream with the log.
// STORE-5. While an attached reader holds output back, output over the budget is stored but not acknowledged. So the
//          keeper stops reading, and its connection stays usable for everything else.

const PAUSE_ABOVE_BYTES = 1 << 20;
const RESUME_BELOW_BYTES = 1 << 18;
/** Bytes of one command after which other sessions get a time slice, since redaction occupies the processor. */
const TIME_SLICE_BYTES = 1 << 16;
/** Pause per slice of output over the budget, as a multiple of the slice's duration, while other entries run. */
const THROTTLE_FACTOR = 5;
/** Time for which up to 64 KiB of output wait for the command's end, which can carry them without an append. */
const SETTLE_MS = 2;
const WORTH_AN_APPEND_BYTES = 1 << 16;
/** Maximum of the output that a finish may carry. More is appended first. */
const MOST_IN_FINISH_BYTES = 1 << 18;

export interface OutputStoreDeps {
  clean: CleanOutput;
  log: CommandLog;
  /** Reports that the log cannot be written. The stream has counted the bytes for the log as omitted. */
  onLogFailed(error: unknown): void;
  /** Retries while Redis is down. */
  append(chunks: readonly StoredChunk[]): Promise<Appended | Fenced>;
  ack(stream: StreamName, offset: number): void;
  pause(): void;
  resume(): void;
  /** Whether another entry runs on this host now. */
  othersRun(): boolean;
  /** Reader to which the command is throttled, if its submitter attached one. */
  reader?: AttachedReader | undefined;
  /** Reports that nothing more can be stored: another host is the owner, or mailbox and keeper disagree. */
  onLost(reason: string): void;
}

/** Thrown when Redis lost stored output that the keeper no longer has, so that later output cannot be stored. */
export class OutputForgotten extends Error {}

export class OutputStore {
  readonly #deps: OutputStoreDeps;
  #flushing: Promise<void> | undefined;
  /** Timer that gives more output time to arrive. */
  #settling: NodeJS.Timeout | undefined;
  readonly #pausedFor = new Set<'room' | 'others'>();
  /** Bytes in the current time slice. */
  #sliceBytes = 0;
  #sliceMs = 0;
  #ending = false;
  #lost = false;
  #failure: unknown;
  /** Number of raw bytes of each stream that are stored. */
  readonly #stored: Partial<Record<StreamName, number>> = {};

  constructor(deps: OutputStoreDeps) {
    this.#deps = deps;
    if (deps.reader !== undefined) deps.reader.onRelease = () => this.acknowledge();
  }

  /** Acknowledges what is stored, unless the reader holds it back. Repeated on new connections of the keeper. */
  acknowledge(offsets: Partial<Record<StreamName, number>> = this.#stored): void {
    if (this.#deps.reader?.holdsBack) return;
    for (const stream of STREAM_NAMES) {
      const offset = offsets[stream];
      if (offset !== undefined) this.#deps.ack(stream, offset);
    }
  }

  /** Sets how many raw bytes of each stream an earlier process of this worker has stored. */
  restore(stored: Readonly<Record<StreamName, number>>): void {
    Object.assign(this.#stored, stored);
  }

  push(stream: StreamName, offset: number, bytes: Uint8Array): void {
    // The output is read and dropped, because the end of the entry follows it on the connection.
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

  /** Stores output until a finish can carry the rest, which it returns. Throws the error that prevented storing. */
  async end(): Promise<StoredChunk[]> {
    this.#ending = true;
    clearTimeout(this.#settling);
    if (this.#flushing !== undefined) await this.#flushing;
    if (this.#failure !== undefined) throw this.#failure;
    const { clean } = this.#deps;
    clean.end();
    while (clean.waitingBytes > MOST_IN_FINISH_BYTES && !this.#lost) await this.#store(clean.release());
    let chunks: StoredChunk[] = [];
    while (clean.isWaiting) {
      const released = clean.release();
      chunks.push(...released.chunks);
      // Not acknowledged, as the keeper holds nothing of an entry that has ended.
      if (released.overflow.length === 0) continue;
      await this.#store({ ...released, chunks });
      chunks = [];
    }
    return [...chunks, ...clean.closingChunks()];
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
    if (released.chunks.length > 0) {
      const stored = await this.#deps.append(released.chunks);
      if (!isStored(stored, released.chunks)) {
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

  /** Writes to the log. A full disk does not end a command. */
  async #log({ overflow }: Released): Promise<void> {
    await this.#deps.log.append(overflow).catch((error: unknown) => this.#deps.onLogFailed(error));
  }

  #fail(error: unknown): void {
    this.#failure = error;
    this.#lose('failed');
  }

  /** Stores nothing more and resumes reading, as the end of the entry comes over the same connection. */
  #lose(reason: string): void {
    this.#lost = true;
    this.#deps.onLost(reason);
    this.#resume('room');
  }
}

/** Returns whether this call stored the pieces, or an earlier call whose reply was lost. */
function isStored(stored: Appended | Fenced, chunks: readonly StoredChunk[]): boolean {
  if (stored.type === 'stored') return true;
  return stored.type === 'misplaced' && chunks.every(({ stream, rawTo }) => rawTo <= stored.offsets[stream]);
}

/** Time that output waits for room in a full Redis. The blocked commands may be those whose end would make room. */
const WAIT_FOR_ROOM_MS = 5_000;

/** Returns calls that append output of one entry. If Redis stays full, they store only its size, as omitted. */
export function createAppend(
  entryId: string,
  clock: () => number = () => performance.now(),
): (chunks: readonly StoredChunk[]) => (once: Pick<OwnedCalls, 'append'>) => Promise<Appended | Fenced> {
  let fullSince: number | undefined;
  return (chunks) => async (once) => {
    try {
      const appended = await once.append(entryId, chunks);
      fullSince = undefined;
      return appended;
    } catch (error) {
      if (!isRedisFull(error)) throw error;
      fullSince ??= clock();
      if (clock() - fullSince < WAIT_FOR_ROOM_MS) throw error;
      return once.append(entryId, chunks.map(toGap), { whenFull: true });
    }
  };
}

function toGap(chunk: StoredChunk): StoredChunk {
  return { ...chunk, omittedBytes: chunk.rawTo - chunk.rawFrom, data: new Uint8Array(0) };
}
