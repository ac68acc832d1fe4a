import { OUTCOMES, parseOrThrow, ShellfleetError, sessionSpecSchema } from '@shellfleet/protocol';
import type { FleetView } from '../view.ts';
import { expandTask, taskSessionId } from './expand-task.ts';
import { type Earlier, ResultsFile, readEarlier } from './results-file.ts';
import { runTask } from './run-task.ts';
import { type BatchOptions, type BatchTotals, batchOptionsSchema, type Task, type TaskResult } from './task.ts';
import { runPool } from './task-pool.ts';

/**
 * A batch of tasks. Iterate it once, to its end. A slow consumer throttles the batch, so memory is bounded apart from
 * the tasks' ids. When the consumer stops, no further task starts, and running tasks are awaited.
 */
export class Batch implements AsyncIterable<TaskResult> {
  /** Totals so far. */
  readonly totals: BatchTotals = {
    tasks: 0,
    skipped: 0,
    ...(Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Omit<BatchTotals, 'tasks' | 'skipped'>),
  };
  readonly #view: FleetView;
  readonly #tasks: Iterable<Task> | AsyncIterable<Task>;
  readonly #options: ReturnType<typeof parseOptions>;
  readonly #signal: AbortSignal | undefined;
  readonly #seen = new Set<string>();
  readonly #sessionIds = new Set<string>();

  /** @internal */
  constructor(view: FleetView, tasks: Iterable<Task> | AsyncIterable<Task>, options: BatchOptions) {
    this.#view = view;
    this.#tasks = tasks;
    const { signal, ...rest } = options;
    // Checks the common spec alone. It is checked again together with each task's spec.
    if (options.spec !== undefined)
      parseOrThrow(sessionSpecSchema, options.spec, 'SESSION_SPEC_INVALID', 'The spec of the batch');
    this.#options = parseOptions(rest);
    this.#signal = signal;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TaskResult, void, undefined> {
    const { concurrency, resumeFrom, out, overwrite } = this.#options;
    const earlier = resumeFrom === undefined ? NOTHING : await readEarlier(resumeFrom);
    const name = this.#options.name ?? earlier.name ?? this.#view.nextId().toLowerCase();
    const how = out !== undefined && out === resumeFrom ? 'resume' : overwrite ? 'replace' : 'new';
    await using file = out === undefined ? undefined : await ResultsFile.open(out, how, name, earlier);
    const named = this.#options.name !== undefined || file !== undefined || earlier.name !== undefined;
    const start = (task: Task) =>
      this.#leavesOut(task, earlier) ? undefined : this.#start(task, name, named, earlier);
    const options = { concurrency, signal: this.#signal };
    for await (const result of runPool(this.#expanded(), start, options)) {
      this.totals[result.outcome]++;
      // A result without attempts is that of a task that was given twice, whose line exists already.
      if (result.attempts > 0) await file?.append(result);
      yield result;
    }
  }

  /** Ids of the sessions of running tasks, each of the first attempt. */
  get sessionIds(): readonly string[] {
    return [...this.#sessionIds];
  }

  /** Runs the batch and returns its totals, without the results. */
  async run(): Promise<BatchTotals> {
    for await (const _result of this);
    return this.totals;
  }

  async *#expanded(): AsyncGenerator<Task, undefined> {
    const { repeats, spec, timeoutMs } = this.#options;
    for await (const task of this.#tasks) yield* expandTask(task, repeats, spec, timeoutMs);
    return undefined;
  }

  #leavesOut(task: Task, { finished }: Earlier): boolean {
    this.totals.tasks++;
    if (!finished.has(task?.id)) return false;
    this.totals.skipped++;
    return true;
  }

  async #start(task: Task, batch: string, named: boolean, { attempts }: Earlier): Promise<TaskResult> {
    const isDuplicate = this.#seen.has(task?.id);
    this.#seen.add(task?.id);
    if (isDuplicate) return duplicate(String(task?.id));
    const { retries, startDeadlineMs } = this.#options;
    const sessionId = taskSessionId(batch, task?.id);
    this.#sessionIds.add(sessionId);
    return runTask(this.#view, task, {
      ...{ sessionId, named, attemptsBefore: attempts.get(task?.id) ?? 0 },
      ...{ retries, startDeadlineMs, signal: this.#signal },
    }).finally(() => this.#sessionIds.delete(sessionId));
  }
}

const NOTHING: Earlier = { name: undefined, finished: new Set(), attempts: new Map() };

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
