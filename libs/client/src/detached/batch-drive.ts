import {
  type BatchLease,
  endBatch,
  RENEW_BATCH_EVERY_MS,
  type Retry,
  readTasks,
  releaseBatch,
  renewBatch,
  type StoredBatch,
} from '@shellfleet/mailbox';
import {
  type ErrorCode,
  ensureShellfleetError,
  firstError,
  isShellfleetError,
  parseKeyspace,
  parseOrThrow,
  ShellfleetError,
  submittedSchema,
  type WireError,
} from '@shellfleet/protocol';
import { retryWhileRedisIsDown, throwQueueError } from '@shellfleet/redis';
import { Batch } from '../batch/batch.ts';
import { batchOptionsSchema, type ParsedBatchOptions } from '../batch/batch-options.ts';
import { BatchStop } from '../batch/batch-stop.ts';
import type { Task } from '../batch/task.ts';
import { listSessions } from '../read/list-sessions.ts';
import { beginClose } from '../submit/close-session.ts';
import { connectView, type FleetView } from '../view.ts';
import { EarlierCounts } from './batch-counts.ts';
import { DetachedPlaces, withPacked } from './detached-places.ts';
import { driverNameOf } from './driver-name.ts';
import type { HeldLease } from './held-lease.ts';
import { StoredResults } from './stored-results.ts';

// DRIVE-1. A driver uses the fleet only while it surely holds the lease by its own clocks. Without it, no call is sent.
// DRIVE-2. A driver that loses the lease, or gives it back, closes and cancels nothing, so the next one continues.
// DRIVE-3. Sessions and commands are named after the submission, the task, the attempt and the step (TASK-1), so the
//     next driver finds them.
// DRIVE-4. What may pass never ends a batch: a driver leaves it to the next one. The number of drivers in a row that
//     come to nothing is bounded.

export interface DriveOptions {
  redisUrl: string;
  lease: BatchLease;
  /** The lease by the clocks of this process, from before it was taken. */
  held: HeldLease;
  batch: StoredBatch;
  /** Options of the batch as they are stored, which are not checked. */
  options: unknown;
  /** Private directory for the files of the tasks, which the caller removes. */
  directory: string;
}

/** How a drive ended. `left`: another driver may continue. */
export type DriveEnd =
  | { type: 'ended'; stoppedBy?: string | undefined; failure?: WireError | undefined }
  | { type: 'left'; because: unknown };

/** Drives a detached batch, whose lease this process has taken, to its end or until the lease is lost. */
export class BatchDrive {
  readonly #given: DriveOptions;
  readonly #held: HeldLease;
  readonly #earlier = new EarlierCounts();
  /** Aborts to end the batch. */
  readonly #stop = new AbortController();
  /** The last renewal of the lease, which never rejects. */
  #renewal: Promise<void> = Promise.resolve();
  #isEnding = false;
  #view: FleetView | undefined;
  #batch: Batch | undefined;
  /** Why no driver can store more results. */
  #failure: ShellfleetError | undefined;
  /** Aborts when this process leaves the batch to another driver. */
  readonly #left = new AbortController();

  constructor(given: DriveOptions) {
    this.#given = given;
    this.#held = given.held;
  }

  /** Drives the batch. Never rejects. */
  async run(): Promise<DriveEnd> {
    const renewing = setInterval(() => {
      this.#renewal = this.#renew();
    }, RENEW_BATCH_EVERY_MS);
    try {
      const end = await this.#drive();
      this.#left.signal.throwIfAborted();
      return await this.#end(end);
    } catch (error) {
      return await this.#fail(error);
    } finally {
      clearInterval(renewing);
      this.#held.lose();
      await this.#view?.close().catch(() => {});
    }
  }

  /** Leaves the batch to another driver at once, and gives the lease back. */
  handOver(): void {
    this.#abandon(leaseLost());
  }

  async #drive() {
    const { redisUrl, lease, batch } = this.#given;
    if (lease.takes > MOST_TAKES) throw cannotBeDriven(lease);
    const { submittedBy: caller } = parseOrThrow(submittedSchema, this.#given.options, 'COMMAND_INVALID', 'The batch');
    const { submittedBy: _caller, ...given } = this.#given.options as { submittedBy?: unknown };
    const options = parseOrThrow(batchOptionsSchema, given, 'COMMAND_INVALID', 'The batch');
    const { namespace, tenant, name } = lease.keys;
    const view = await connectView(
      {
        ...{ redisUrl, namespace: parseKeyspace(namespace).namespace, tenant, caller, interceptors: [] },
        ...{ place: `the fleet of the batch ${name}`, requireRight: this.#requireLease },
      },
      () => lease.sealer,
    );
    this.#view = view;
    if (view.namespace !== namespace)
      throw new ShellfleetError('FLEET_CONFLICT', `Redis has another fleet than that of the batch ${name}.`);
    const onFailed = (error: unknown) => {
      if (!isShellfleetError(error) || error.code !== 'BATCH_TOO_LARGE') return this.#abandon(error);
      this.#failure = error;
      this.#stop.abort(new BatchStop('failure'));
    };
    const places = new DetachedPlaces(lease, this.#given.directory, { retry: this.#retryRead, onDiskFailed: onFailed });
    const store = new StoredResults(view, {
      ...{ lease, options, places, earlier: this.#earlier },
      ...{ requireLease: this.#requireLease, retry: this.#retry, retryRead: this.#retryRead, onFailed },
      onEarlier: () => {
        if (options.stopOnFailure && this.#earlier.hasFailure) this.#stop.abort(new BatchStop('failure'));
      },
    });
    if (batch.cancel !== undefined) this.#stop.abort(new BatchStop('signal'));
    const ofSessions = driverNameOf(batch);
    const running = new Batch(
      view,
      () => this.#tasks(),
      { ...options, ...(await this.#deadline(options)), name: ofSessions, signal: this.#stop.signal },
      store,
    );
    this.#batch = running;
    await running.run();
    if (this.#failure !== undefined) throw this.#failure;
    const { stoppedBy, totals, progress } = running;
    if (stoppedBy !== undefined) await closeSessions(view, `batch-${ofSessions}-`);
    return { stoppedBy, totals: this.#earlier.withTotals(totals), progress: this.#earlier.withProgress(progress) };
  }

  /** Returns what is left of the time of the batch. Without any, no task starts. */
  async #deadline({ deadlineMs }: ParsedBatchOptions): Promise<{ deadlineMs?: number }> {
    if (deadlineMs === undefined) return {};
    const { lease, batch } = this.#given;
    const [seconds] = await this.#retryRead(() => lease.redis.time().catch(throwQueueError));
    const leftMs = (batch.startedAt ?? 0) + deadlineMs - Number(seconds) * 1_000;
    if (leftMs < 1) this.#stop.abort(new BatchStop('batch-deadline'));
    return { deadlineMs: Math.max(1, leftMs) };
  }

  /** Yields the tasks of the batch. Their `files` name what is packed. */
  async *#tasks(): AsyncGenerator<Task> {
    const { lease } = this.#given;
    try {
      for await (const { task, blobs = {} } of readTasks(lease, lease.id, this.#retryRead))
        yield withPacked(task as Task, blobs);
    } catch (error) {
      // Tasks that run would be awaited, their sessions closed, and their results dropped.
      if (!isOfTheBatch(error)) this.#abandon(error);
      throw error;
    }
  }

  async #renew(): Promise<void> {
    if (this.#isEnding) return;
    const { lease } = this.#given;
    const progress = this.#batch && this.#earlier.withProgress(this.#batch.progress);
    try {
      this.#requireLease();
      const { cancel } = await this.#held.renew(() => renewBatch(lease, progress));
      if (cancel !== undefined) this.#stop.abort(new BatchStop('signal'));
    } catch (error) {
      if (!isOutage(error)) this.#abandon(error);
    }
  }

  /** Throws LEASE_LOST, and leaves the batch, unless this process surely has the lease. */
  readonly #requireLease = (): void => {
    if (this.#held.held) return;
    const error = leaseLost();
    this.#abandon(error);
    throw error;
  };

  #abandon(because: unknown): void {
    if (this.#left.signal.aborted) return;
    this.#left.abort(because);
    this.#held.lose();
    // Ends all waits of the batch. Its tasks end, and nothing of their ends is stored.
    void this.#view?.close().catch(() => {});
    this.#stop.abort(new BatchStop('signal'));
  }

  async #end(end: Parameters<typeof endBatch>[1]): Promise<DriveEnd> {
    const { stoppedBy, failure } = end;
    // A renewal after the end would say that the lease is lost.
    this.#isEnding = true;
    await this.#renewal;
    await this.#retry(() => endBatch(this.#given.lease, end));
    return { type: 'ended', stoppedBy, failure };
  }

  /** Ends a batch that nobody can drive, and leaves any other one. */
  async #fail(thrown: unknown): Promise<DriveEnd> {
    const cause = firstError(thrown);
    const failure = this.#failure ?? ensureShellfleetError(cause);
    const { lease } = this.#given;
    const isOver = isOfTheBatch(failure) || (!isOfTheDriver(failure) && lease.takes >= MOST_TAKES);
    const [totals, progress] = [this.#batch?.totals, this.#batch?.progress];
    try {
      if (!this.#left.signal.aborted && isOver)
        return await this.#end({ failure: failure.toJSON(), totals: totals ?? {}, progress: progress ?? {} });
    } catch {
      // The lease is lost, or Redis is away.
    }
    // The end of a renewal would put off the look of the next driver.
    this.#held.lose();
    await this.#renewal;
    const because: unknown = this.#left.signal.reason ?? cause;
    await releaseBatch(lease, { counts: !isOfTheDriver(because) }).catch(() => {});
    return { type: 'left', because };
  }

  /** Repeats a call while Redis is away, as long as this process has the lease. */
  readonly #retry: Retry = (call) => retryWhileRedisIsDown(call, this.#left.signal);

  /** Repeats a read likewise, but not after an error reply, which the next one would get as well. */
  readonly #retryRead: Retry = (call) => retryWhileRedisIsDown(call, this.#left.signal, { errorReplies: 'throw' });
}

/** Drivers in a row that may come to nothing, such as with their process, before a batch ends with an error. */
const MOST_TAKES = 10;

/** Errors that every driver would have. */
const OF_THE_BATCH: readonly string[] = [
  'COMMAND_INVALID',
  'SESSION_SPEC_INVALID',
  'UNAUTHORIZED',
  'BATCH_NOT_FOUND',
  'BATCH_TOO_LARGE',
] satisfies ErrorCode[];

/** Errors that tell nothing about the batch. */
const OF_THE_DRIVER: readonly string[] = [
  'LEASE_LOST',
  'QUEUE_UNAVAILABLE',
  'SEAL_KEY_UNKNOWN',
  'FLEET_CONFLICT',
  'PROTOCOL_MISMATCH',
  'REDIS_UNSUITABLE',
] satisfies ErrorCode[];

const leaseLost = () => new ShellfleetError('LEASE_LOST', 'This process does not drive the batch any more.');

const isOfTheBatch = (error: unknown) => isShellfleetError(error) && OF_THE_BATCH.includes(error.code);
const isOfTheDriver = (error: unknown) => isShellfleetError(error) && OF_THE_DRIVER.includes(error.code);

function cannotBeDriven({ keys: { name } }: BatchLease): ShellfleetError {
  const message = `${MOST_TAKES} workers in a row began to drive the batch ${name}, and each of them ended without a result. Its tasks, or what their commands print, may need more memory than a worker has.`;
  return new ShellfleetError('INTERNAL', message, { name });
}

const isOutage = (error: unknown): boolean => isShellfleetError(error) && error.code === 'QUEUE_UNAVAILABLE';

/** Begins to close the sessions of a batch that an earlier driver has left open. */
async function closeSessions(view: FleetView, prefix: string): Promise<void> {
  for await (const { id } of listSessions(view, {}))
    if (id.startsWith(prefix)) await beginClose(view, view.keysOf(id), undefined).catch(() => {});
}
