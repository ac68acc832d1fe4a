import { EventEmitter } from 'node:events';
import { firstError, OUTCOMES, parseOrThrow, ShellfleetError, sessionSpecSchema } from '@shellfleet/protocol';
import type { FleetView } from '../view.ts';
import { FileStore } from './batch-files.ts';
import { type BatchOptions, type BatchTotals, batchOptionsSchema, type ParsedBatchOptions } from './batch-options.ts';
import { type BatchProgress, ProgressCount } from './batch-progress.ts';
import { BatchStop, stopOf } from './batch-stop.ts';
import type { BatchStore } from './batch-store.ts';
import { expandTask, type TaskRepeat, taskSessionId } from './expand-task.ts';
import { IdSet } from './id-set.ts';
import type { Earlier } from './results-file.ts';
import { runTask, type TaskEnd } from './run-task.ts';
import type { Task } from './task.ts';
import { runPool } from './task-pool.ts';
import { type TaskResult, verdictOf } from './task-result.ts';

/** Tasks of a batch, or a function that returns them, such as a generator function. */
export type Tasks = Iterable<Task> | AsyncIterable<Task> | (() => Iterable<Task> | AsyncIterable<Task>);

/** The events of a batch, with what its listeners get. */
export interface BatchEvents {
  /** An attempt at a task begins. Its session may have to wait for a host. */
  started: { id: string; sessionId: string; attempt: number };
  /** An attempt ended, and another one follows. */
  retried: { id: string; attempt: number } & Pick<TaskResult, 'outcome' | 'error'>;
  /** A task has ended, and its line is written. */
  ended: TaskResult;
  /** How far the batch is: once per second while it runs, and at its end. */
  progress: BatchProgress;
}

const PROGRESS_EVERY_MS = 1_000;

/**
 * A batch of tasks. Iterate it once, to its end. A slow consumer throttles the batch, so memory is bounded apart from
 * 16 to 32 bytes for each task. When the consumer stops, no further task starts, and running tasks are awaited.
 */
export class Batch implements AsyncIterable<TaskResult> {
  /** Totals so far. */
  readonly totals: BatchTotals = {
    ...{ tasks: 0, skipped: 0, passed: 0, failed: 0, infrastructure: 0, cancelled: 0 },
    ...(Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Pick<BatchTotals, (typeof OUTCOMES)[number]>),
  };
  readonly #view: FleetView;
  readonly #tasks: Tasks;
  readonly #options: ParsedBatchOptions;
  readonly #store: BatchStore;
  readonly #signal: AbortSignal | undefined;
  readonly #events = new EventEmitter();
  readonly #progress: ProgressCount;
  readonly #seen = new IdSet();
  readonly #sessionIds = new Set<string>();
  /** The first error that a listener has thrown. */
  #thrown: { error: unknown } | undefined;
  /** Aborts to end the batch: by the caller's signal, at its deadline, or after a failure. */
  readonly #stop = new AbortController();

  /**
   * Creates a batch whose results are kept in `store`. Default: the files that the options name.
   * @internal
   */
  constructor(view: FleetView, tasks: Tasks, options: BatchOptions, store?: BatchStore) {
    this.#view = view;
    this.#tasks = tasks;
    const { signal, ...rest } = options;
    // Checks the common spec alone. It is checked again together with each task's spec.
    if (options.spec !== undefined)
      parseOrThrow(sessionSpecSchema, options.spec, 'SESSION_SPEC_INVALID', 'The spec of the batch');
    this.#options = parseOrThrow(batchOptionsSchema, rest, 'COMMAND_INVALID', 'The batch');
    this.#store = store ?? new FileStore(view, this.#options);
    this.#signal = signal;
    const count = this.#options.count ?? (Array.isArray(tasks) ? tasks.length : undefined);
    this.#progress = new ProgressCount(count === undefined ? undefined : count * this.#options.repeats);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TaskResult, void, undefined> {
    try {
      yield* this.#iterate();
    } catch (error) {
      throw firstError(error);
    }
  }

  async *#iterate(): AsyncGenerator<TaskResult, void, undefined> {
    const { concurrency, out } = this.#options;
    const earlier = await this.#store.readEarlier();
    const name = this.#options.name ?? earlier.manifest?.name ?? this.#view.nextId().toLowerCase();
    using _watch = this.#watch();
    await using results = await this.#store.open(name, earlier);
    const named = this.#options.name !== undefined || out !== undefined || earlier.manifest !== undefined;
    const start = (given: TaskRepeat) =>
      this.#leavesOut(given, earlier) ? undefined : this.#start(given, name, named, earlier);
    const { signal } = this.#stop;
    try {
      for await (const { end, given } of runPool(this.#expanded(), start, { concurrency, signal })) {
        const { result } = end;
        this.totals[result.outcome]++;
        this.totals[verdictOf(result)]++;
        // A result without attempts is that of a task that was given twice, whose line exists already.
        if (result.attempts > 0) await results.append(given, end);
        this.#emit('ended', result);
        yield result;
      }
    } finally {
      this.#emit('progress', this.progress);
    }
    if (this.#thrown !== undefined) throw this.#thrown.error;
  }

  /** Ids of the sessions of running tasks, each of the first attempt. */
  get sessionIds(): readonly string[] {
    return [...this.#sessionIds];
  }

  /** How far the batch is. */
  get progress(): BatchProgress {
    return this.#progress.read();
  }

  /** Why the batch ended before its last task. Undefined while it runs, and when it ended by itself. */
  get stoppedBy(): 'batch-deadline' | 'failure' | 'signal' | undefined {
    const { reason } = this.#stop.signal;
    return reason instanceof BatchStop && reason.by !== 'deadline' ? reason.by : undefined;
  }

  /** Calls the listener at each event of this type, until `off`. An error that it throws ends the batch. */
  on<Type extends keyof BatchEvents>(type: Type, listener: (event: BatchEvents[Type]) => void): this {
    this.#events.on(type, listener);
    return this;
  }

  /** Removes a listener. */
  off<Type extends keyof BatchEvents>(type: Type, listener: (event: BatchEvents[Type]) => void): this {
    this.#events.off(type, listener);
    return this;
  }

  /** Runs the batch and returns its totals, without the results. */
  async run(): Promise<BatchTotals> {
    for await (const _result of this);
    return this.totals;
  }

  #emit<Type extends keyof BatchEvents>(type: Type, event: BatchEvents[Type]): void {
    try {
      this.#events.emit(type, event);
    } catch (error) {
      this.#thrown ??= { error };
      this.#stop.abort(new BatchStop('signal'));
    }
  }

  /** Watches the deadline of the batch and the caller's signal, and reports progress. */
  #watch(): Disposable {
    const { deadlineMs } = this.#options;
    const signal = this.#signal;
    const onAbort = () => this.#stop.abort(new BatchStop(signal === undefined ? 'signal' : stopOf(signal)));
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    const atDeadline = () => this.#stop.abort(new BatchStop('batch-deadline'));
    const deadline = deadlineMs === undefined ? undefined : setTimeout(atDeadline, deadlineMs).unref();
    const report = () => this.#emit('progress', this.progress);
    const reporting = setInterval(report, PROGRESS_EVERY_MS).unref();
    return {
      [Symbol.dispose]: () => {
        signal?.removeEventListener('abort', onAbort);
        clearTimeout(deadline);
        clearInterval(reporting);
      },
    };
  }

  async *#expanded(): AsyncGenerator<TaskRepeat, undefined> {
    const { repeats, spec, timeoutMs, taskDeadlineMs } = this.#options;
    const common = { spec, timeoutMs, deadlineMs: taskDeadlineMs };
    const tasks = typeof this.#tasks === 'function' ? this.#tasks() : this.#tasks;
    for await (const task of tasks) yield* expandTask(task, repeats, common);
    return undefined;
  }

  #leavesOut({ id }: TaskRepeat, { finished, attempts }: Earlier): boolean {
    this.totals.tasks++;
    const isKnown = attempts.has(id);
    if (!finished.has(id) && (this.#options.only === undefined || isKnown)) return false;
    this.totals.skipped++;
    this.#progress.skip();
    return true;
  }

  async #start(
    given: TaskRepeat,
    batch: string,
    named: boolean,
    { attempts }: Earlier,
  ): Promise<{ given: TaskRepeat; end: TaskEnd }> {
    const { id } = given;
    if (!this.#seen.add(id)) return { given, end: this.#duplicate(given) };
    const { retries, repeats, startDeadlineMs } = this.#options;
    const sessionId = taskSessionId(batch, id);
    this.#sessionIds.add(sessionId);
    this.#progress.begin(id);
    const end = await runTask(this.#view, given, {
      ...{ sessionId, repeats, named, attemptsBefore: attempts.get(id) ?? 0 },
      ...{ retries, startDeadlineMs, places: this.#store.places, onError: this.#store.onError },
      signal: this.#stop.signal,
      onAttempt: (attempt) => this.#emit('started', { id, ...attempt }),
      onRetry: ({ attempt, end: { outcome, error } }) =>
        this.#emit('retried', { id, attempt, outcome, ...(error === undefined ? {} : { error }) }),
    });
    this.#sessionIds.delete(sessionId);
    this.#progress.end(id, end.result);
    // The pool starts the next task before anybody sees this result, so it must know at once.
    if (this.#options.stopOnFailure && !end.result.passed) this.#stop.abort(new BatchStop('failure'));
    return { given, end };
  }

  #duplicate({ id, task, repeat }: TaskRepeat): TaskEnd {
    const error = new ShellfleetError(
      'COMMAND_INVALID',
      `The task id ${JSON.stringify(id)} occurs twice in the batch. Give each task its own id.`,
    ).toJSON();
    const startedAt = new Date().toISOString();
    const result: TaskResult = {
      ...{ id, task: String(task?.id), repeat, passed: false, outcome: 'error', sessionId: '', results: [], error },
      ...{ attempts: 0, startedAt, durationMs: 0, outputBytes: 0 },
    };
    this.#progress.end(id, result);
    return { result, used: [] };
  }
}
