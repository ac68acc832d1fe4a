import { Notifier } from '@shellfleet/concurrency';
import { STREAM_NAMES, type StreamName } from '@shellfleet/protocol';

// A submitter can attach a reader to its command. The command is throttled to it, as a program is to its pipe's reader.
// READER-1. While the reader reads, at most UNREAD_BYTES of the output over the stream's budget are unread on this host
//           before acknowledgements are held back. Then the keeper's ring buffer fills, and the command blocks in a
//           write.
// READER-2. A reader without a heartbeat for GONE_AFTER_MS, or without progress for `stallMs` while output was held
//           back, no longer affects the command, until it comes back.
// READER-3. A reader cannot send a heartbeat while Redis is down, so that time does not count.
// READER-4. Nothing is held back after a cancel, or after the end.

const UNREAD_BYTES = 4 << 20;
const GONE_AFTER_MS = 10_000;
const CHECK_EVERY_MS = 500;
/** Duration above which a call to Redis counts as one that was repeated because Redis was down. */
const AWAY_AFTER_MS = 1_000;

export type ReadPosition = Readonly<Record<StreamName, number>>;

interface AttachedReaderDeps {
  /** Time that the reader may make no progress while output is held back. */
  stallMs: number;
  /** Resolves when Redis answers. */
  reachRedis(): Promise<unknown>;
  clock?: () => number;
}

export class AttachedReader {
  /** Called when output is no longer held back. */
  onRelease: () => void = () => {};
  readonly #deps: AttachedReaderDeps;
  readonly #clock: () => number;
  readonly #stored: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  readonly #read: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  readonly #changes = new Notifier();
  /** Times of the last heartbeat and of the reader's last progress. */
  #seenAt: number;
  #readAt: number;
  #absent: 'gone' | 'stalled' | undefined;
  #closed = false;
  #checking: NodeJS.Timeout | undefined;

  constructor(deps: AttachedReaderDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? (() => performance.now());
    this.#seenAt = this.#readAt = this.#clock();
  }

  /** Whether stored output must not be acknowledged yet. */
  get holdsBack(): boolean {
    return this.#checking !== undefined;
  }

  /** Records that the overflow log has all cleaned bytes of the stream before `offset`. */
  stored(stream: StreamName, offset: number): void {
    this.#stored[stream] = Math.max(this.#stored[stream], offset);
    this.#changes.notify();
    if (this.holdsBack || this.#closed || this.#absent !== undefined || this.#unreadBytes <= UNREAD_BYTES) return;
    this.#readAt = this.#clock();
    this.#checking = setInterval(() => void this.#check(), CHECK_EVERY_MS);
  }

  /** Records a heartbeat. The reader has read, or is about to read, up to `position`. */
  seen(position: ReadPosition): void {
    this.#seenAt = this.#clock();
    const advanced = STREAM_NAMES.filter((stream) => position[stream] > this.#read[stream]);
    for (const stream of advanced) this.#read[stream] = position[stream];
    if (advanced.length > 0) this.#readAt = this.#seenAt;
    if (advanced.length > 0 || this.#absent === 'gone') this.#absent = undefined;
    if (this.#unreadBytes <= UNREAD_BYTES) this.#release();
  }

  /** Resolves when there is output behind `position`, when none will follow, or after `timeoutMs`. */
  async untilMore(position: ReadPosition, timeoutMs: number): Promise<void> {
    const until = this.#clock() + timeoutMs;
    while (!this.#closed && STREAM_NAMES.every((stream) => this.#stored[stream] <= position[stream])) {
      const leftMs = until - this.#clock();
      if (leftMs <= 0) return;
      await this.#changes.wait({ timeoutMs: leftMs });
    }
  }

  close(): void {
    this.#closed = true;
    this.#changes.notify();
    this.#release();
  }

  get #unreadBytes(): number {
    return STREAM_NAMES.reduce((sum, stream) => sum + Math.max(0, this.#stored[stream] - this.#read[stream]), 0);
  }

  async #check(): Promise<void> {
    const now = this.#clock();
    if (now - this.#readAt > this.#deps.stallMs) this.#leave('stalled');
    if (now - this.#seenAt <= GONE_AFTER_MS) return;
    await this.#deps.reachRedis().catch(() => {});
    if (this.#clock() - now > AWAY_AFTER_MS) this.#seenAt = this.#clock();
    else if (this.#clock() - this.#seenAt > GONE_AFTER_MS) this.#leave('gone');
  }

  #leave(how: 'gone' | 'stalled'): void {
    this.#absent ??= how;
    this.#release();
  }

  #release(): void {
    if (this.#checking === undefined) return;
    clearInterval(this.#checking);
    this.#checking = undefined;
    this.onRelease();
  }
}
