import { createHash } from 'node:crypto';
import { rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { type BatchLease, type Retry, readBlob } from '@shellfleet/mailbox';
import { isShellfleetError, LIMITS } from '@shellfleet/protocol';
import type { Task } from '../batch/task.ts';
import { type OutputPlace, toFileName } from '../batch/task-outputs.ts';
import type { TaskPlaces } from '../batch/task-places.ts';
import { isOfTheDisk } from '../files/disk-error.ts';
import { unpackTo } from './unpack-to.ts';

/** Most that the packed files of a batch take on the disk of its driver. */
const MOST_UNPACKED_BYTES = 4_294_967_296;
/** Share of the free disk that one of them may take. */
const SHARE_OF_FREE = 0.5;
/** Most that is fetched of one output, before it is packed. */
const MOST_FETCHED = { bytes: 16 * LIMITS.detachedTaskOutputBytes, files: 10_000 };

/** Character between the names of packed files, where each repeat of a task has its own. */
const BETWEEN = ',';

/** Returns a task whose `files` name what is packed, by their paths in the sandbox. */
export function withPacked(task: Task, blobs: Record<string, string[]>): Task {
  // Any other value ends as an error when it is checked.
  if (typeof task !== 'object' || task === null || task.files === undefined) return task;
  const names = Object.entries(blobs).map(([path, blob]) => [path, blob.join(BETWEEN)]);
  return { ...task, files: Object.fromEntries(names) };
}

/**
 * Where a driver of a detached batch has the files of its tasks: in a private directory of its own. The `files` of a
 * task name what was packed when the batch was submitted.
 */
export class DetachedPlaces implements TaskPlaces {
  readonly #lease: BatchLease;
  readonly #directory: string;
  /** Packed files that are unpacked here, or are being unpacked. */
  readonly #unpacked = new Map<string, Promise<string>>();

  readonly #retry: Retry;
  readonly #onDiskFailed: (error: unknown) => void;
  /** Bytes that may still be unpacked. */
  #left: number;
  /** Ends with the last unpacking. One follows the other, so that each knows what the others have left. */
  #last: Promise<unknown> = Promise.resolve();

  /**
   * Names the places below `directory`. `retry` may repeat each read of Redis. `onDiskFailed` is called when this
   * machine cannot hold the files, so that no task ends with this as its error.
   */
  constructor(
    lease: BatchLease,
    directory: string,
    { retry, onDiskFailed }: { retry: Retry; onDiskFailed(error: unknown): void },
    mostBytes = MOST_UNPACKED_BYTES,
  ) {
    this.#lease = lease;
    this.#directory = directory;
    this.#retry = retry;
    this.#onDiskFailed = onDiskFailed;
    this.#left = mostBytes;
  }

  /** Takes note of an error of a local file, which may be one of the disk. */
  readonly noteError = (error: unknown): void => {
    // Another driver may have room.
    if (isOfTheDisk(error)) this.#onDiskFailed(error);
  };

  readonly filesOf = ({ files = {} }: Pick<Task, 'id' | 'files'>, repeat: number): Record<string, string> =>
    Object.fromEntries(
      Object.entries(files).map(([path, names]) => {
        const all = names.split(BETWEEN);
        return [path, all[repeat - 1] ?? all[0] ?? ''];
      }),
    );

  readonly fileOf = (blob: string): Promise<string> => {
    const known = this.#unpacked.get(blob);
    if (known !== undefined) return known;
    const unpacked = this.#last.then(() => this.#unpack(blob));
    this.#last = unpacked.catch(() => {});
    this.#unpacked.set(blob, unpacked);
    return unpacked;
  };

  readonly outputsOf = ({ id, outputs = {} }: Pick<Task, 'id' | 'outputs'>, repeat: number): OutputPlace[] =>
    Object.keys(outputs).map((path, index) => ({
      ...{ path, isOwn: true, most: MOST_FETCHED, onError: this.noteError },
      local: join(this.#directoryOf(id, repeat), String(index)),
    }));

  /** Removes what was fetched of one run of a task. */
  async removeOutputs({ id, repeat }: { id: string; repeat: number }): Promise<void> {
    await rm(this.#directoryOf(id, repeat), { recursive: true, force: true });
  }

  #directoryOf(id: string, repeat: number): string {
    return join(this.#directory, 'outputs', toFileName(id), String(repeat));
  }

  async #unpack(blob: string): Promise<string> {
    // The name comes from the submitter.
    const local = join(this.#directory, 'files', createHash('sha256').update(blob).digest('hex'));
    const { bavail, bsize } = await statfs(this.#directory);
    const free = Math.floor(bavail * bsize * SHARE_OF_FREE);
    try {
      const packed = readBlob(this.#lease, this.#lease.id, blob, this.#retry);
      this.#left -= await unpackTo(packed, local, 'replace', Math.min(this.#left, free));
      return local;
    } catch (error) {
      this.noteError(error);
      const isTooLarge = isShellfleetError(error) && error.code === 'FILE_TOO_LARGE';
      if (isTooLarge && free < this.#left) this.#onDiskFailed(error);
      // The next task that needs it tries again.
      if (!isTooLarge) this.#unpacked.delete(blob);
      throw error;
    }
  }
}
