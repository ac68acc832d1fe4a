import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type BatchLease, readBlob } from '@shellfleet/mailbox';
import { LIMITS } from '@shellfleet/protocol';
import type { Task } from '../batch/task.ts';
import { type OutputPlace, toFileName } from '../batch/task-outputs.ts';
import type { TaskPlaces } from '../batch/task-places.ts';
import { unpackTo } from './unpack-to.ts';

/** Most that one packed file or directory takes on the disk of the driver. */
const MOST_UNPACKED_BYTES = 1_073_741_824;
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

  constructor(lease: BatchLease, directory: string) {
    this.#lease = lease;
    this.#directory = directory;
  }

  readonly filesOf = ({ files = {} }: Pick<Task, 'id' | 'files'>, repeat: number): Record<string, string> =>
    Object.fromEntries(
      Object.entries(files).map(([path, names]) => {
        const all = names.split(BETWEEN);
        return [path, all[repeat - 1] ?? all[0] ?? ''];
      }),
    );

  readonly fileOf = (blob: string): Promise<string> => {
    const unpacked = this.#unpacked.get(blob) ?? this.#unpack(blob);
    this.#unpacked.set(blob, unpacked);
    return unpacked;
  };

  readonly outputsOf = ({ id, outputs = {} }: Pick<Task, 'id' | 'outputs'>, repeat: number): OutputPlace[] =>
    Object.keys(outputs).map((path, index) => ({
      ...{ path, isOwn: true, most: MOST_FETCHED },
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
    try {
      await unpackTo(readBlob(this.#lease, this.#lease.id, blob), local, 'replace', MOST_UNPACKED_BYTES);
      return local;
    } catch (error) {
      // The next task that needs it tries again.
      this.#unpacked.delete(blob);
      throw error;
    }
  }
}
