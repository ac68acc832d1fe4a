import type { Logger } from '../log/logger.ts';

/** Pause after a failure; it doubles with each further one. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
const REPORT_EVERY_MS = 60_000;

/** What a worker shows of a sink. */
export interface SinkState {
  readonly name: 'log' | 'audit';
  /** Lines that the sink does not have, and will not get. */
  readonly dropped: number;
  /** Lines that wait for the sink. */
  readonly waiting: number;
  /** Whether the sink took the last lines. */
  readonly isUp: boolean;
  /** Delivers what waits, if the sink takes it at once. Never rejects. */
  close(): Promise<void>;
}

/** Logs when a sink fails and recovers, and counts what it missed. */
export class SinkHealth {
  readonly #name: string;
  readonly #logger: () => Logger | undefined;
  #failures = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #reportedDropped = 0;
  dropped = 0;

  constructor(name: string, logger: () => Logger | undefined) {
    this.#name = name;
    this.#logger = logger;
  }

  get isUp(): boolean {
    return this.#failures === 0;
  }

  /** Logs a failure, at most once a minute, and returns how long to wait before the next attempt. */
  failed(err: unknown): number {
    this.#failures += 1;
    const now = performance.now();
    if (now - this.#reportedAt >= REPORT_EVERY_MS) {
      this.#reportedAt = now;
      const problem = err instanceof Error ? err.message : String(err);
      this.#logger()?.warn({ sink: this.#name, problem, ...this.#takeDropped() }, 'sink.failed');
    }
    return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.#failures - 1));
  }

  delivered(): void {
    if (this.isUp) return;
    this.#failures = 0;
    this.#reportedAt = Number.NEGATIVE_INFINITY;
    this.#logger()?.info({ sink: this.#name, ...this.#takeDropped() }, 'sink.recovered');
  }

  /** Counts and logs the lines that waited for the sink when it was closed. */
  closed(waiting: number): void {
    if (waiting === 0) return;
    this.dropped += waiting;
    this.#logger()?.warn({ sink: this.#name, ...this.#takeDropped() }, 'sink.closed');
  }

  #takeDropped() {
    const dropped = this.dropped - this.#reportedDropped;
    this.#reportedDropped = this.dropped;
    return dropped === 0 ? {} : { dropped };
  }
}
