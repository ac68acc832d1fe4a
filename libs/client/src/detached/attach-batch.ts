import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type BatchAccess,
  noteBatch,
  readManifest,
  readOutput,
  readResultLines,
  readTasks,
  type StoredBatch,
} from '@shellfleet/mailbox';
import { ensureShellfleetError, fromWireError, LIMITS, ShellfleetError, tryJson } from '@shellfleet/protocol';
import type { BatchProgress } from '../batch/batch-progress.ts';
import { IdSet } from '../batch/id-set.ts';
import { type BatchManifest, manifestSchema } from '../batch/manifest.ts';
import { writeManifest } from '../batch/manifest-file.ts';
import { ResultsFile, readEarlier } from '../batch/results-file.ts';
import { outputPlaces } from '../batch/task-outputs.ts';
import { type TaskOutput, type TaskResult, taskResultSchema } from '../batch/task-result.ts';
import type { FleetView } from '../view.ts';
import { accessTo, findBatch, toDetachedBatch } from './detached-info.ts';
import { refuseLinks, staysBelow } from './output-place.ts';
import { unpackTo } from './unpack-to.ts';

/** How the results of a detached batch are fetched. */
export interface AttachBatchOptions {
  /**
   * File that gets each result as a line of JSON, and beside it `<out>.batch`. A file that an earlier `attach` to the
   * same batch has written is continued; any other existing file is refused. Outputs of tasks are written to their
   * paths below the working directory. Without it, results have no outputs. Default: none.
   */
  out?: string | undefined;
  /** Function that is called about once per second with how far the batch is. */
  onProgress?: ((progress: BatchProgress) => void) | undefined;
  /** Signal that ends only this iteration, with its reason. The batch goes on. */
  signal?: AbortSignal | undefined;
}

const LOOK_EVERY_MS = 1_000;
/** Number of looks at a batch that nobody drives after which hosts are told of it again. */
const LOOKS_UNTIL_NOTE = 10;
/** Most bytes of an output when it is unpacked. */
const MOST_UNPACKED = 16 * LIMITS.detachedTaskOutputBytes;

/**
 * Yields the results of a batch, those that are stored first, until the batch has ended. Rejects with BATCH_NOT_FOUND,
 * with COMMAND_INVALID when `out` exists, with FILE_…, and with the error of a batch that failed as a whole.
 */
export async function* attachBatch(
  view: FleetView,
  name: string,
  { out, onProgress, signal }: AttachBatchOptions,
): AsyncGenerator<TaskResult, void, undefined> {
  const access = accessTo(view, name);
  const { id } = await findBatch(access);
  await using file = out === undefined ? undefined : await AttachedFile.open(access, id, out);
  let [next, looks, lease] = [0, 0, -1];
  for (;;) {
    signal?.throwIfAborted();
    // It is read before the results, so that the results of a batch that has ended are all there.
    const batch = await findSame(access, id);
    for await (const page of readResultLines(access, id, next)) {
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
    const { leaseUntil = 0 } = batch;
    looks = state === 'waiting' || leaseUntil === lease ? looks + 1 : 0;
    lease = leaseUntil;
    if (looks > 0 && looks % LOOKS_UNTIL_NOTE === 0) await noteBatch(access);
    await delay(LOOK_EVERY_MS, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
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

/** The file with the results of a batch, and the outputs of its tasks. */
class AttachedFile implements AsyncDisposable {
  readonly #access: BatchAccess;
  readonly #id: string;
  readonly #out: string;
  readonly #file: ResultsFile;
  readonly #known: IdSet;
  #outputs: Promise<Map<string, Record<string, string>>> | undefined;

  private constructor(access: BatchAccess, id: string, out: string, file: ResultsFile, known: IdSet) {
    this.#access = access;
    this.#id = id;
    this.#out = out;
    this.#file = file;
    this.#known = known;
  }

  static async open(access: BatchAccess, id: string, out: string): Promise<AttachedFile> {
    const { manifest, finished } = await readEarlier(out);
    const isOwn = manifest?.detached === id;
    const file = await ResultsFile.open(out, isOwn ? 'resume' : 'new', await readOwnManifest(access, id));
    return new AttachedFile(access, id, out, file, isOwn && file.isRegular ? finished : new IdSet());
  }

  /** Tells whether an earlier call has written the result. */
  has(id: string): boolean {
    return this.#known.has(id);
  }

  /** Writes the outputs of a task, then its line, and returns it with the paths on this machine. */
  async add(result: TaskResult): Promise<TaskResult> {
    const outputs = result.outputs && (await this.#writeOutputs(result, result.outputs));
    const whole = { ...result, ...(outputs === undefined ? {} : { outputs }) };
    await this.#file.append(whole);
    return whole;
  }

  async #writeOutputs(
    { id, task, repeat }: TaskResult,
    stored: Record<string, TaskOutput>,
  ): Promise<Record<string, TaskOutput>> {
    this.#outputs ??= this.#readOutputs();
    const templates = (await this.#outputs).get(task) ?? {};
    const written: [string, TaskOutput][] = [];
    for (const [path, { error }] of Object.entries(stored)) {
      if (error !== undefined) written.push([path, { error }]);
      else {
        const local = this.#write(id, path, { templates, task, repeat });
        written.push([
          path,
          await local.then(
            (place) => ({ path: place }),
            (cause: unknown) => ({ error: ensureShellfleetError(cause).toJSON() }),
          ),
        ]);
      }
    }
    return Object.fromEntries(written);
  }

  /** Writes one output to the path that the submitter has given, which the line of the result does not decide. */
  async #write(
    run: string,
    path: string,
    { templates, task, repeat }: { templates: Record<string, string>; task: string; repeat: number },
  ): Promise<string> {
    const template = Object.hasOwn(templates, path) ? templates[path] : undefined;
    if (template === undefined || !staysBelow(template))
      throw new ShellfleetError('FILE_DENIED', `The task has no output ${path} below this directory.`, { path });
    const [place] = outputPlaces({ [path]: template }, task, repeat);
    const packed = await readOutput(this.#access, this.#id, run, path);
    if (place === undefined || packed === undefined)
      throw new ShellfleetError('FILE_NOT_FOUND', `${path} is not stored any more.`, { path });
    await refuseLinks(resolve('.'), place.local);
    await unpackTo(packed, place.local, place.isOwn ? 'replace' : 'merge', MOST_UNPACKED);
    return place.local;
  }

  /** Reads the paths of the outputs of all tasks, as they were submitted. */
  async #readOutputs(): Promise<Map<string, Record<string, string>>> {
    const byTask = new Map<string, Record<string, string>>();
    /** Most tasks have the same paths, which are held once. */
    const same = new Map<string, Record<string, string>>();
    for await (const { task } of readTasks(this.#access, this.#id)) {
      const { id, outputs } = task as { id: string; outputs?: Record<string, string> };
      if (outputs === undefined) continue;
      const key = JSON.stringify(outputs);
      const held = same.get(key) ?? outputs;
      same.set(key, held);
      byTask.set(id, held);
    }
    return byTask;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using _file = this.#file;
    if (!this.#file.isRegular) return;
    // A batch that was removed has none any more.
    const manifest = await readOwnManifest(this.#access, this.#id).catch(() => undefined);
    if (manifest !== undefined) await writeManifest(this.#out, manifest);
  }
}

async function readOwnManifest(access: BatchAccess, id: string): Promise<BatchManifest> {
  const stored = manifestSchema.safeParse(await readManifest(access, id)).data;
  return { ...(stored ?? manifestSchema.parse({ name: access.keys.name })), detached: id };
}
