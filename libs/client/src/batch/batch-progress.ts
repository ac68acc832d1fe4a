import { type TaskResult, type TaskVerdict, verdictOf } from './task-result.ts';

/** How far a batch is. All numbers are of this run, without what an earlier one has done. */
export interface BatchProgress {
  /** Tasks that have ended: the sum of the next four. */
  done: number;
  /** Tasks that passed. */
  passed: number;
  /** Tasks that ended by themselves and did not pass. */
  failed: number;
  /** Tasks that the fleet failed to run, or whose end is not known. */
  infrastructure: number;
  /** Tasks that were cancelled. */
  cancelled: number;
  /** Tasks that are not run again, because an earlier run has their results. */
  skipped: number;
  /** Tasks that have begun: they run, or wait for a host. */
  running: number;
  /** Tasks that have not begun. Undefined when the number of tasks is unknown. */
  queued: number | undefined;
  /** Tasks that ended per second, over the last minute. */
  perSecond: number;
  /** Estimated time to the end. Undefined without a number of tasks, and before any has ended. */
  etaMs: number | undefined;
  /** The task that has run for the longest time. Undefined when none runs. */
  slowest: { id: string; forMs: number } | undefined;
}

/** Seconds over which the rate is taken. */
const RATE_SECONDS = 60;

/** Counts the tasks of a batch. */
export class ProgressCount {
  readonly #ended: Record<TaskVerdict, number> = { passed: 0, failed: 0, infrastructure: 0, cancelled: 0 };
  /** Ids of the tasks that run → when they began. The first is the slowest, because a Map keeps its order. */
  readonly #running = new Map<string, number>();
  /** Number of ends in each of the last seconds. The place of a second is its number modulo the length. */
  readonly #perSecond: number[] = Array.from({ length: RATE_SECONDS }, () => 0);
  readonly #total: number | undefined;
  readonly #now: () => number;
  readonly #startedAt: number;
  #second: number;
  #skipped = 0;

  /** `total` is the number of tasks with all repeats, if it is known. `now` is a clock in ms. */
  constructor(total: number | undefined, now = () => performance.now()) {
    this.#total = total;
    this.#now = now;
    this.#startedAt = now();
    this.#second = this.#toSecond();
  }

  skip(): void {
    this.#skipped++;
  }

  begin(id: string): void {
    this.#running.set(id, this.#now());
  }

  end(id: string, result: Pick<TaskResult, 'passed' | 'outcome'>): void {
    this.#running.delete(id);
    this.#ended[verdictOf(result)]++;
    this.#forget();
    const place = this.#second % RATE_SECONDS;
    this.#perSecond[place] = (this.#perSecond[place] ?? 0) + 1;
  }

  read(): BatchProgress {
    this.#forget();
    const done = Object.values(this.#ended).reduce((sum, count) => sum + count, 0);
    const running = this.#running.size;
    const left = this.#total === undefined ? undefined : Math.max(0, this.#total - this.#skipped - done);
    const recent = this.#perSecond.reduce((sum, count) => sum + count, 0);
    const seconds = Math.min(RATE_SECONDS, Math.max(1, (this.#now() - this.#startedAt) / 1_000));
    const perSecond = recent / seconds;
    const [first] = this.#running;
    return {
      done,
      ...this.#ended,
      skipped: this.#skipped,
      running,
      queued: left === undefined ? undefined : Math.max(0, left - running),
      perSecond,
      etaMs: left === undefined || perSecond === 0 ? undefined : Math.round((left / perSecond) * 1_000),
      slowest: first && { id: first[0], forMs: Math.round(this.#now() - first[1]) },
    };
  }

  /** Empties the places of the seconds that have passed since the last call. */
  #forget(): void {
    const second = this.#toSecond();
    const passed = Math.min(RATE_SECONDS, second - this.#second);
    for (let step = 1; step <= passed; step++) this.#perSecond[(this.#second + step) % RATE_SECONDS] = 0;
    this.#second = second;
  }

  #toSecond(): number {
    return Math.floor(this.#now() / 1_000);
  }
}
