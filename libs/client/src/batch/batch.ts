import { OUTCOMES, parseOrThrow, ShellfleetError } from '@shellfleet/protocol';
import type { Producer } from '../producer.ts';
import { readFinishedTasks } from './finished-tasks.ts';
import { runTask } from './run-task.ts';
import { type BatchOptions, type BatchTotals, batchOptionsSchema, type Task, type TaskResult } from './task.ts';

/**
 * A set of tasks under way. Iterate it once, to its end: tasks are taken as room for them comes, results are given as tasks end.
 * A consumer that is slow holds the batch back, so that memory stays bounded; one that stops lets what runs end, and starts nothing more.
 */
export class Batch implements AsyncIterable<TaskResult> {
  readonly totals: BatchTotals = {
    tasks: 0,
    skipped: 0,
    ...(Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Omit<BatchTotals, 'tasks' | 'skipped'>),
  };
  readonly #producer: Producer;
  readonly #tasks: Iterable<Task> | AsyncIterable<Task>;
  readonly #options: ReturnType<typeof parseOptions>;

  /** @internal */
  constructor(producer: Producer, tasks: Iterable<Task> | AsyncIterable<Task>, options: BatchOptions) {
    this.#producer = producer;
    this.#tasks = tasks;
    this.#options = parseOptions(options);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TaskResult, void, undefined> {
    const { concurrency, resumeFrom } = this.#options;
    const finished = resumeFrom === undefined ? new Set<string>() : await readFinishedTasks(resumeFrom);
    const running = new Map<number, Promise<{ index: number; result: TaskResult }>>();
    const settleOne = async () => {
      const { index, result } = await Promise.race(running.values());
      running.delete(index);
      this.totals[result.outcome]++;
      return result;
    };
    const batchId = this.#producer.nextId();
    const seen = new Set<string>();
    try {
      let index = 0;
      for await (const task of this.#tasks) {
        this.totals.tasks++;
        if (finished.has(task?.id)) {
          this.totals.skipped++;
          continue;
        }
        const at = index++;
        const result = seen.has(task?.id) ? duplicate(task.id) : this.#run(task, `batch-${batchId}-${at}`);
        seen.add(task?.id);
        running.set(
          at,
          Promise.resolve(result).then((ended) => ({ index: at, result: ended })),
        );
        if (running.size >= concurrency) yield await settleOne();
      }
      while (running.size > 0) yield await settleOne();
    } finally {
      await Promise.allSettled(running.values());
    }
  }

  /** Runs the batch for its totals alone. */
  async run(): Promise<BatchTotals> {
    for await (const _result of this);
    return this.totals;
  }

  #run(task: Task, sessionId: string): Promise<TaskResult> {
    return runTask(this.#producer, task, sessionId, this.#options.retries);
  }
}

function parseOptions(options: BatchOptions) {
  return parseOrThrow(batchOptionsSchema, options, 'COMMAND_INVALID', 'The batch');
}

function duplicate(id: string): TaskResult {
  const error = new ShellfleetError(
    'COMMAND_INVALID',
    `The task id ${JSON.stringify(id)} stands twice in the batch. Give each task its own id.`,
  );
  return { id, sessionId: '', outcome: 'error', results: [], error: error.toJSON(), attempts: 0, durationMs: 0 };
}
