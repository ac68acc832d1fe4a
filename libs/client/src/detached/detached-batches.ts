import { cancelBatch, listBatches, removeBatch, type StoredBatch } from '@shellfleet/mailbox';
import { ShellfleetError } from '@shellfleet/protocol';
import type { Tasks } from '../batch/batch.ts';
import type { TaskResult } from '../batch/task-result.ts';
import { nameOfUser } from '../connection/name-of-this-user.ts';
import type { FleetView } from '../view.ts';
import { type AttachBatchOptions, attachBatch } from './attach-batch.ts';
import { accessTo, type DetachedBatch, findAnyBatch, findBatch, toDetachedBatch } from './detached-info.ts';
import { type SubmitOptions, submitBatch } from './submit-batch.ts';

/** Batches that workers of the fleet drive, so that no process of the submitter has to stay. */
export class DetachedBatches {
  readonly #view: FleetView;

  /** @internal */
  constructor(view: FleetView) {
    this.#view = view;
  }

  /**
   * Submits a batch. Resolves when its tasks and files are in Redis, sealed. Submitting the same batch again under its
   * name has no effect. Rejects with COMMAND_INVALID for an invalid task, or when this client signs or has
   * interceptors; with
   * BATCH_TOO_LARGE above 64 MiB; with QUOTA_EXCEEDED above 1,000 batches or 4 GiB of the tenant; with
   * IDEMPOTENCY_CONFLICT when another batch has the name; and with FILE_… for a file that cannot be read.
   */
  submit(tasks: Tasks, options: SubmitOptions = {}): Promise<DetachedBatch> {
    return submitBatch(this.#view, tasks, options);
  }

  /** Lists the batches of this tenant, the newest first, until their retention is over. */
  async list(): Promise<DetachedBatch[]> {
    const { redis, sealer, fleet } = this.#view;
    const found: StoredBatch[] = [];
    for await (const batch of listBatches({ redis, sealer, fleet }, this.#view)) found.push(batch);
    return found.sort((a, b) => b.createdAt - a.createdAt).map(toDetachedBatch);
  }

  /** Reads how far a batch is. Rejects with BATCH_NOT_FOUND. */
  async get(name: string): Promise<DetachedBatch> {
    return toDetachedBatch(await findBatch(accessTo(this.#view, name)));
  }

  /**
   * Yields the results of a batch, those that are stored first, until it has ended; as often as one likes. Rejects with
   * BATCH_NOT_FOUND, with COMMAND_INVALID when `out` has other results, and with the error of a batch that failed as a
   * whole.
   */
  attach(name: string, options: AttachBatchOptions = {}): AsyncGenerator<TaskResult, void, undefined> {
    return attachBatch(this.#view, name, options);
  }

  /**
   * Ends a batch: no further task starts, and running tasks end as cancellations within seconds. One that is being
   * submitted ends at once. Resolves with false if it had ended. Rejects with BATCH_NOT_FOUND.
   */
  async cancel(name: string): Promise<boolean> {
    const access = accessTo(this.#view, name);
    const { id } = await findAnyBatch(access);
    return (await cancelBatch(access, id, `cancelled by ${nameOfUser(this.#view)}`)) !== 'over';
  }

  /**
   * Removes a batch that has ended, with its results. Rejects with BATCH_NOT_FOUND, and with COMMAND_INVALID before its
   * end.
   */
  async remove(name: string): Promise<void> {
    const access = accessTo(this.#view, name);
    const { id, cancel } = await findBatch(access);
    if (await removeBatch(access, id)) return;
    const step =
      cancel === undefined ? 'Cancel it first.' : 'It was cancelled, and ends within seconds. Try again then.';
    throw new ShellfleetError('COMMAND_INVALID', `The batch ${name} has not ended. ${step}`, { name });
  }
}
