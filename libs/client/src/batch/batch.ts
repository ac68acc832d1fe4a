import { OUTCOMES, parseOrThrow, ShellfleetError } from '@shellfleet/protocol';
import type { View } from '../view.ts';
import { readFinishedTasks } from './finished-tasks.ts';
import { runTask } from './run-task.ts';
import { type BatchOptions, type BatchTotals, batchOptionsSchema, type Task, type TaskResult } from './task.ts';
import { runPool } from './task-pool.ts';

/**
 * A batch of tasks. Iterate it once, to its end: tasks are read when there is room for them, and results come as tasks end.
 * A slow consumer throttles the batch: apart from the ids of its tasks, memory is bounded. When the consumer stops, no further task starts,
 * and running ones are awaited.
 */
export class Batch implements AsyncIterable<TaskResult> {
  /** Counted so far. */
  readonly totals: BatchTotals = {
    tasks: 0,
    skipped: 0,
    ...(Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Omit<BatchTotals, 'tasks' | 'skipped'>),
  };
  readonly #view: View;
  readonly #tasks: Iterable<Task> | AsyncIterable<Task>;
  readonly #options: ReturnType<typeof parseOptions>;
  readonly #signal: AbortSignal | undefined;
  /** prefix of the ids of its sessions */
  readonly #name: string;
  readonly #seen = new Set<string>();

  /** @internal */
  constructor(view: View, tasks: Iterable<Task> | AsyncIterable<Task>, options: BatchOptions) {
    this.#view = view;
    this.#tasks = tasks;
    const { signal, ...rest } = options;
    this.#options = parseOptions(rest);
    this.#signal = signal;
    this.#name = `batch-${view.nextId()}`;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TaskResult, void, undefined> {
    const { concurrency, resumeFrom } = this.#options;
    const finished = resumeFrom === undefined ? new Set<string>() : await readFinishedTasks(resumeFrom);
    let index = 0;
    const start = (task: Task) => (this.#leavesOut(task, finished) ? undefined : this.#start(task, index++));
    const options = { concurrency, signal: this.#signal };
    for await (const result of runPool(toAsyncIterator(this.#tasks), start, options)) {
      this.totals[result.outcome]++;
      yield result;
    }
  }

  /** Runs the batch and returns its totals, without the results. */
  async run(): Promise<BatchTotals> {
    for await (const _result of this);
    return this.totals;
  }

  #leavesOut(task: Task, finished: ReadonlySet<string>): boolean {
    this.totals.tasks++;
    if (!finished.has(task?.id)) return false;
    this.totals.skipped++;
    return true;
  }

  async #start(task: Task, index: number): Promise<TaskResult> {
    const isDuplicate = this.#seen.has(task?.id);
    this.#seen.add(task?.id);
    if (isDuplicate) return duplicate(String(task?.id));
    return runTask(this.#view, task, `${this.#name}-${index}`, this.#options.retries, this.#signal);
  }
}

async function* toAsyncIterator(tasks: Iterable<Task> | AsyncIterable<Task>): AsyncGenerator<Task, undefined> {
  yield* tasks;
  return undefined;
}

function parseOptions(options: BatchOptions) {
  return parseOrThrow(batchOptionsSchema, options, 'COMMAND_INVALID', 'The batch');
}

function duplicate(id: string): TaskResult {
  const error = new ShellfleetError(
    'COMMAND_INVALID',
    `The task id ${JSON.stringify(id)} occurs twice in the batch. Give each task its own id.`,
  );
  return { id, sessionId: '', outcome: 'error', results: [], error: error.toJSON(), attempts: 0, durationMs: 0 };
}
