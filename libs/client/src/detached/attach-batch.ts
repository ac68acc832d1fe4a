import { setTimeout as delay } from 'node:timers/promises';
import { type BatchAccess, noteBatch, type Retry, readResultLines, type StoredBatch } from '@shellfleet/mailbox';
import { firstError, fromWireError, ShellfleetError, tryJson } from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import type { BatchProgress } from '../batch/batch-progress.ts';
import { type TaskResult, taskResultSchema } from '../batch/task-result.ts';
import type { FleetView } from '../view.ts';
import { AttachedFile } from './attached-file.ts';
import { accessTo, findBatch, toDetachedBatch } from './detached-info.ts';

/** How the results of a detached batch are fetched. */
export interface AttachBatchOptions {
  /**
   * File that gets each result as a line of JSON, and beside it `<out>.batch` and `<out>.outputs`. A file that an
   * earlier `attach` to the same batch has written is continued; any other existing file is refused. Outputs of tasks
   * are written to their paths below the working directory, and replace only what such an `attach` has written. Without
   * it, results have no outputs. Default: none.
   */
  out?: string | undefined;
  /** Whether to wait for later results. With `false` only those that are stored now are yielded. Default: true. */
  follow?: boolean | undefined;
  /** Function that is called about once per second with how far the batch is. */
  onProgress?: ((progress: BatchProgress) => void) | undefined;
  /** Signal that ends only this iteration, with its reason. The batch goes on. */
  signal?: AbortSignal | undefined;
}

const LOOK_EVERY_MS = 1_000;
/** Number of looks at a batch that nobody drives after which hosts are told of it again. */
const LOOKS_UNTIL_NOTE = 10;

/**
 * Yields the results of a batch, those that are stored first, until the batch has ended. Once it has begun, it waits
 * while Redis is away. Rejects with BATCH_NOT_FOUND, with COMMAND_INVALID when `out` exists, with FILE_…, and with the
 * error of a batch that failed as a whole.
 */
export async function* attachBatch(
  view: FleetView,
  name: string,
  options: AttachBatchOptions,
): AsyncGenerator<TaskResult, void, undefined> {
  try {
    yield* readAndFollow(view, name, options);
  } catch (error) {
    throw firstError(error);
  }
}

async function* readAndFollow(
  view: FleetView,
  name: string,
  { out, follow = true, onProgress, signal }: AttachBatchOptions,
): AsyncGenerator<TaskResult, void, undefined> {
  const access = accessTo(view, name);
  const { id } = await findBatch(access);
  const pause = () =>
    delay(LOOK_EVERY_MS, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
  const retry: Retry = (call) =>
    retryWhileRedisIsDown(call, signal, {
      errorReplies: 'throw',
      async waitBeforeRetry() {
        await pause();
        // Throws once this client is closed.
        void view.redis;
      },
    });
  await using file = out === undefined ? undefined : await AttachedFile.open(access, id, out, { retry, signal });
  let [next, looks, lease] = [0, 0, -1];
  for (;;) {
    signal?.throwIfAborted();
    // The state is read before the results: once it is `ended`, every result is stored.
    const batch = await retry(() => findSame(access, id));
    for await (const page of readResultLines(access, id, next, retry)) {
      for (const line of page.lines) {
        signal?.throwIfAborted();
        const result = taskResultSchema.safeParse(tryJson(line)).data;
        if (result === undefined || file?.has(result.id)) continue;
        yield file === undefined ? withoutOutputs(result) : await file.add(result);
      }
      next = page.next;
    }
    const { state, progress, error } = toDetachedBatch(batch);
    if (progress !== undefined) onProgress?.(progress);
    if (state === 'ended') {
      if (error !== undefined) throw fromWireError(error);
      return;
    }
    if (!follow) return;
    const { leaseUntil = 0 } = batch;
    looks = state === 'waiting' || leaseUntil === lease ? looks + 1 : 0;
    lease = leaseUntil;
    if (looks > 0 && looks % LOOKS_UNTIL_NOTE === 0) await retry(() => noteBatch(access));
    await pause();
  }
}

/** Rejects with BATCH_NOT_FOUND when the batch is not the one that was there at first. */
async function findSame(access: BatchAccess, id: string): Promise<StoredBatch> {
  const batch = await findBatch(access);
  if (batch.id === id) return batch;
  const { name } = access.keys;
  throw new ShellfleetError('BATCH_NOT_FOUND', `The batch ${name} was removed, and another one has its name.`, {
    name,
  });
}

function withoutOutputs({ outputs: _outputs, ...result }: TaskResult): TaskResult {
  return result;
}
