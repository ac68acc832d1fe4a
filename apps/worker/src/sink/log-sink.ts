import { setTimeout as delay } from 'node:timers/promises';
import { Notifier } from '@shellfleet/concurrency';
import type { SinkTarget } from '../config/sink-target.ts';
import type { Logger } from '../log/logger.ts';
import { deliver } from './deliver.ts';
import { SinkHealth, type SinkState } from './sink-health.ts';

// SINK-1. A line is added in memory and at once, so no sink delays what is logged.
// SINK-2. Lines wait in bounded memory while the sink is down or slow. When it is full, the newest are dropped and
//     counted.
// SINK-3. Lines arrive in their order. After a failure a batch is sent again as a whole, so lines may arrive twice.

const MOST_WAITING_CHARS = 4 * 1024 * 1024;
const BATCH_CHARS = 256 * 1024;
/** Time in which lines are collected for one batch. */
const COLLECT_MS = 500;
const CLOSE_WITHIN_MS = 2_000;

export interface LogSinkOptions {
  maxChars?: number;
  collectMs?: number;
  closeWithinMs?: number;
  deliver?: (target: SinkTarget, text: string) => Promise<void>;
}

/** Copies the lines of the log to a sink. */
export class LogSink implements SinkState {
  readonly name = 'log';
  readonly #target: SinkTarget;
  readonly #options: Required<LogSinkOptions>;
  readonly #health: SinkHealth;
  readonly #added = new Notifier();
  readonly #closing = new AbortController();
  #lines: string[] = [];
  #chars = 0;
  #logger: Logger | undefined;
  readonly #running: Promise<void>;

  constructor(target: SinkTarget, options: LogSinkOptions = {}) {
    this.#target = target;
    const defaults = { maxChars: MOST_WAITING_CHARS, collectMs: COLLECT_MS, closeWithinMs: CLOSE_WITHIN_MS, deliver };
    this.#options = { ...defaults, ...options };
    this.#health = new SinkHealth('log', () => this.#logger);
    this.#running = this.#run();
  }

  get dropped(): number {
    return this.#health.dropped;
  }

  get waiting(): number {
    return this.#lines.length;
  }

  get isUp(): boolean {
    return this.#health.isUp;
  }

  /** Logs failures of the sink from now on. */
  reportTo(logger: Logger): void {
    this.#logger = logger;
  }

  /** Adds a line, with its line feed. */
  push(line: string): void {
    if (this.#chars + line.length > this.#options.maxChars) {
      this.#health.dropped += 1;
      return;
    }
    this.#lines.push(line);
    this.#chars += line.length;
    this.#added.notify();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const late = delay(this.#options.closeWithinMs, undefined, { ref: false });
    const endsAt = performance.now() + this.#options.closeWithinMs;
    await Promise.race([this.#running.then(() => this.#deliverRest(endsAt)), late]);
    this.#health.closed(this.#lines.length);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      if (this.#lines.length === 0) await this.#added.wait({ signal }).catch(() => {});
      await delay(this.#options.collectMs, undefined, { signal, ref: false }).catch(() => {});
      const pauseMs = await this.#deliverNext();
      if (pauseMs > 0) await delay(pauseMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  /** Delivers what waits, until the sink fails or the time is over. */
  async #deliverRest(endsAt: number): Promise<void> {
    while (this.#lines.length > 0 && performance.now() < endsAt) if ((await this.#deliverNext()) > 0) return;
  }

  /** Delivers a batch, and returns how long to wait before the next one. */
  async #deliverNext(): Promise<number> {
    let count = 0;
    for (let chars = 0; count < this.#lines.length && (count === 0 || chars <= BATCH_CHARS); count += 1)
      chars += this.#lines[count]?.length ?? 0;
    if (count === 0) return 0;
    const text = this.#lines.slice(0, count).join('');
    try {
      await this.#options.deliver(this.#target, text);
    } catch (error) {
      return this.#health.failed(error);
    }
    this.#lines = this.#lines.slice(count);
    this.#chars -= text.length;
    this.#health.delivered();
    return 0;
  }
}
