import { OUTCOMES, parseOrThrow, ShellfleetError } from '@shellfleet/protocol';
import type { View } from '../view.ts';
import { readFinishedTasks } from './finished-tasks.ts';
import { runTask } from './run-task.ts';
import { type BatchOptions, type BatchTotals, batchOptionsSchema, type Task, type TaskResult } from './task.ts';

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
    const source = toAsyncIterator(this.#tasks);
    const running = new Map<number, Promise<Ended>>();
    let next: Promise<Taken> | undefined;
    let exhausted = false;
    try {
      for (let index = 0; ; ) {
        exhausted ||= this.#signal?.aborted === true;
        if (!exhausted && running.size < concurrency)
          next ??= source.next().then((taken) => ({ type: 'taken', taken }));
        if (running.size === 0 && (exhausted || next === undefined)) return;
        const step = await Promise.race([...running.values(), ...(next === undefined || exhausted ? [] : [next])]);
        if (step.type === 'ended') {
          running.delete(step.index);
          this.totals[step.result.outcome]++;
          yield step.result;
          continue;
        }
        next = undefined;
        if (step.taken.done) exhausted = true;
        else if (!this.#leavesOut(step.taken.value, finished))
          running.set(index, this.#start(step.taken.value, index++));
      }
    } finally {
      // The source may still be producing a task. It is not run, and an error of it is dropped.
      next?.catch(() => {});
      source.return(undefined).catch(() => {});
      await Promise.allSettled(running.values());
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

  async #start(task: Task, index: number): Promise<Ended> {
    const isDuplicate = this.#seen.has(task?.id);
    this.#seen.add(task?.id);
    const result = isDuplicate
      ? duplicate(task.id)
      : await runTask(this.#view, task, `${this.#name}-${index}`, this.#options.retries, this.#signal);
    return { type: 'ended', index, result };
  }
}

type Taken = { type: 'taken'; taken: IteratorResult<Task> };
type Ended = { type: 'ended'; index: number; result: TaskResult };

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
