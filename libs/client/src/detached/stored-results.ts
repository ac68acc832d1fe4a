import {
  appendResults,
  type BatchLease,
  type Retry,
  readManifest,
  readResultLines,
  runOutputsTooLarge,
  storeManifest,
  storeOutputs,
} from '@shellfleet/mailbox';
import {
  ensureShellfleetError,
  isShellfleetError,
  LIMITS,
  ShellfleetError,
  type WireError,
} from '@shellfleet/protocol';
import type { ParsedBatchOptions } from '../batch/batch-options.ts';
import type { BatchResults, BatchStore } from '../batch/batch-store.ts';
import { describeBatch, ManifestKeeper } from '../batch/describe-batch.ts';
import { DiscardSessions, mayBeKept } from '../batch/discard-sessions.ts';
import type { TaskRepeat } from '../batch/expand-task.ts';
import { type BatchManifest, manifestSchema } from '../batch/manifest.ts';
import { addNewest, type Earlier, noEarlier, parseLine, sessionsOf, toLine } from '../batch/results-file.ts';
import type { TaskEnd } from '../batch/run-task.ts';
import type { Task } from '../batch/task.ts';
import { toFileName } from '../batch/task-outputs.ts';
import type { TaskOutput, TaskResult } from '../batch/task-result.ts';
import type { FleetView } from '../view.ts';
import type { EarlierCounts } from './batch-counts.ts';
import type { DetachedPlaces } from './detached-places.ts';
import { packPath } from './pack-path.ts';

// STORED-1. Each result line of a batch is final: a later driver runs its task again never, whatever its outcome.
// STORED-2. The outputs of a task are stored before its line, and its sessions are discarded after it. So a driver that
//     has no line of a task finds the sessions of the task.

/** Longest time for which a line waits for others. */
const WAIT_MS = 100;
/** Characters of the lines after which they are stored at once. */
const MOST_WAITING = 262_144;

interface StoredResultsOptions {
  lease: BatchLease;
  /** Options as they were submitted. */
  options: ParsedBatchOptions;
  places: DetachedPlaces;
  /** Gets the lines of earlier drivers. */
  earlier: EarlierCounts;
  /** Is called when `earlier` has all of these. */
  onEarlier(): void;
  /** Throws LEASE_LOST when this process does not surely hold the lease. */
  requireLease(): void;
  /** Repeats a call while Redis is away. */
  retry: Retry;
  /** Does so as well, but not after an error reply. */
  retryRead: Retry;
  /** Is called when nothing more can be stored. */
  onFailed(error: unknown): void;
}

/** The results of a detached batch in Redis, for its driver. */
export class StoredResults implements BatchStore, BatchResults {
  readonly places: DetachedPlaces;
  readonly #view: FleetView;
  readonly #given: StoredResultsOptions;
  readonly #discards: DiscardSessions;
  #manifest: ManifestKeeper | undefined;
  #waiting: string[] = [];
  #waitingChars = 0;
  #timer: NodeJS.Timeout | undefined;
  #storing: Promise<void> = Promise.resolve();

  constructor(view: FleetView, given: StoredResultsOptions) {
    this.#view = view;
    this.#given = given;
    this.places = given.places;
    this.#discards = new DiscardSessions(view, { sync: () => this.#store() });
  }

  /** Leaves the batch after an outage. Otherwise the session would be closed, and the task run again. */
  readonly onError = (error: unknown): void => {
    if (isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE') this.#failed(error);
  };

  async readEarlier(): Promise<Earlier> {
    const { lease, earlier: counts, retryRead } = this.#given;
    const earlier = noEarlier();
    for await (const { lines } of readResultLines(lease, lease.id, 0, retryRead)) {
      for (const text of lines) {
        const line = parseLine(text);
        if (line === undefined) continue;
        earlier.finished.add(line.id);
        addNewest(earlier.newest, sessionsOf(line));
        counts.add(line);
      }
    }
    this.#given.onEarlier();
    earlier.manifest = manifestSchema.safeParse(await retryRead(() => readManifest(lease, lease.id))).data;
    return earlier;
  }

  async open(_name: string, earlier: Earlier): Promise<BatchResults> {
    const { lease, options, retry } = this.#given;
    const manifest = await describeBatch(this.#view, lease.keys.name, options, earlier);
    const store = (changed: BatchManifest) => retry(() => storeManifest(lease, changed));
    await store(manifest);
    this.#manifest = new ManifestKeeper(manifest, store);
    // What is not discarded expires with the retention.
    await this.#discards.addEarlier(earlier.newest).catch(() => {});
    return this;
  }

  async append({ task, repeat }: TaskRepeat, { result, used }: TaskEnd): Promise<void> {
    // Without the lease, tasks end because this process may use the fleet no longer.
    this.#given.requireLease();
    // The next driver finds the task as it is, once Redis is back.
    if (result.error?.code === 'QUEUE_UNAVAILABLE')
      throw this.#failed(new ShellfleetError(result.error.code, result.error.message));
    const outputs = await this.#storeOutputs(task, repeat, result);
    const line = toLine(outputs === undefined ? result : { ...result, outputs });
    this.#waiting.push(line);
    this.#waitingChars += line.length;
    this.#manifest?.noteImages(task?.spec?.image ?? 'default', result);
    if (!mayBeKept(task, result)) await this.#discards.add(used);
    if (this.#waitingChars >= MOST_WAITING) await this.#store();
    else
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        void this.#store().catch(() => {});
      }, WAIT_MS).unref();
  }

  /** Packs and stores what was fetched of a run, and returns the outputs of its line. */
  async #storeOutputs(
    task: Task,
    repeat: number,
    { id, outputs }: TaskResult,
  ): Promise<Record<string, TaskOutput> | undefined> {
    const errors: Record<string, WireError> = {};
    const pack = (path: string, local: string) =>
      packPath(local, LIMITS.detachedTaskOutputBytes).catch((cause: unknown) => {
        this.places.noteError(cause);
        const error = ensureShellfleetError(cause);
        // The error names a path on this machine, of which the submitter knows nothing.
        errors[path] = error.code === 'FILE_TOO_LARGE' ? runOutputsTooLarge(path) : error.toJSON();
        return undefined;
      });
    const packed: { path: string; packed: Buffer | undefined }[] = [];
    // An earlier driver may have stored outputs that there are not now.
    for (const path of Object.keys(outputsOf(task))) {
      const { path: local, error } = outputs?.[path] ?? {};
      if (error !== undefined) errors[path] = error;
      packed.push({ path, packed: local === undefined ? undefined : await pack(path, local) });
    }
    const { lease, retry } = this.#given;
    const stored = retry(() => storeOutputs(lease, id, packed)).catch((error: unknown) => {
      throw this.#failed(error);
    });
    Object.assign(errors, await stored);
    if (outputs === undefined) return undefined;
    await this.places.removeOutputs({ id: task.id, repeat });
    const told = Object.keys(outputs).map((path): [string, TaskOutput] => {
      const error = errors[path];
      return [path, error === undefined ? { path: placeFor(task, path, repeat) } : { error }];
    });
    return Object.fromEntries(told);
  }

  /** Stores the lines so far. Rejects, and has rejected since, when that fails. */
  #store(): Promise<void> {
    this.#storing = this.#storing.then(async () => {
      const lines = this.#waiting;
      [this.#waiting, this.#waitingChars] = [[], 0];
      if (lines.length > 0) await appendResults(this.#given.lease, lines, this.#given.retry);
    });
    this.#storing.catch((error: unknown) => this.#failed(error));
    return this.#storing;
  }

  /** Lets the driver leave the batch at once, although tasks run, and returns the error. */
  #failed(error: unknown): unknown {
    this.#given.onFailed(error);
    return error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    await using _manifest = this.#manifest;
    await using _discards = this.#discards;
    await this.#store();
  }
}

/** Returns the path that the submitter has named for an output of a run. */
function placeFor({ id, outputs = {} }: Task, path: string, repeat: number): string {
  return (outputs[path] ?? '').replaceAll('{id}', toFileName(id)).replaceAll('{repeat}', String(repeat));
}

/** Returns the outputs of a task, which may be any value that JSON has. */
function outputsOf(task: Task | null): object {
  const outputs: unknown = task?.outputs;
  return typeof outputs === 'object' && outputs !== null ? outputs : {};
}
