import { OUTCOMES } from '@shellfleet/protocol';
import type { BatchTotals } from '../batch/batch-options.ts';
import type { BatchProgress } from '../batch/batch-progress.ts';
import { type TaskResult, verdictOf } from '../batch/task-result.ts';

type Ended = Omit<BatchTotals, 'tasks' | 'skipped'>;

/** Counts the tasks that earlier drivers of a batch have ended, so that its totals are those of all drivers. */
export class EarlierCounts {
  #ended = Object.fromEntries(
    ['passed', 'failed', 'infrastructure', 'cancelled', ...OUTCOMES].map((name) => [name, 0]),
  ) as Ended;
  #lines = 0;

  /** Whether a task did not pass. */
  get hasFailure(): boolean {
    return this.#ended.passed < this.#lines;
  }

  add(line: Pick<TaskResult, 'passed' | 'outcome'>): void {
    this.#lines++;
    this.#ended[line.outcome]++;
    this.#ended[verdictOf(line)]++;
  }

  /** Returns the totals of all drivers, of those of this driver. */
  withTotals(own: BatchTotals): BatchTotals {
    const sums = Object.entries(this.#ended).map(([name, count]) => [name, count + own[name as keyof Ended]]);
    // A driver that stops before it reads the tasks counts none of them.
    const tasks = Math.max(own.tasks, this.#lines);
    return { ...own, ...Object.fromEntries(sums), tasks, skipped: 0 };
  }

  /** Returns how far the batch is with the work of all drivers, of the progress of this one. */
  withProgress(own: BatchProgress): BatchProgress {
    const { passed, failed, infrastructure, cancelled } = this.#ended;
    return {
      ...own,
      done: own.done + this.#lines,
      passed: own.passed + passed,
      failed: own.failed + failed,
      infrastructure: own.infrastructure + infrastructure,
      cancelled: own.cancelled + cancelled,
      skipped: 0,
    };
  }
}
