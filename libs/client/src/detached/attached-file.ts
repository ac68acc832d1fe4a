import { stat } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { type BatchAccess, type Retry, readManifest, readOutput, readTasks } from '@shellfleet/mailbox';
import { ensureShellfleetError, isShellfleetError, LIMITS, ShellfleetError } from '@shellfleet/protocol';
import { IdSet } from '../batch/id-set.ts';
import { type BatchManifest, manifestSchema } from '../batch/manifest.ts';
import { writeManifest } from '../batch/manifest-file.ts';
import { noEarlier, ResultsFile, readEarlier } from '../batch/results-file.ts';
import { outputPlaces } from '../batch/task-outputs.ts';
import type { TaskOutput, TaskResult } from '../batch/task-result.ts';
import { isOfTheDisk } from '../files/disk-error.ts';
import { lockFile } from './lock-file.ts';
import { isVisibleBelow, refuseLinks } from './output-place.ts';
import { unpackTo } from './unpack-to.ts';
import { WrittenOutputs } from './written-outputs.ts';

/** Most bytes of an output when it is unpacked. */
const MOST_UNPACKED = 16 * LIMITS.detachedTaskOutputBytes;

/** How outputs are read. */
interface Reading {
  /** Function that repeats a read while Redis is away. */
  retry: Retry;
  /** Signal whose abort ends the repetitions. */
  signal: AbortSignal | undefined;
}

interface Opened {
  file: ResultsFile;
  /** Runs of tasks whose lines earlier calls have written. */
  known: IdSet;
  written: WrittenOutputs;
  /** Lets other processes write the file. */
  unlock(): Promise<void>;
}

/** The file with the results of a batch, and the outputs of its tasks. */
export class AttachedFile implements AsyncDisposable {
  readonly #access: BatchAccess;
  readonly #id: string;
  readonly #out: string;
  readonly #file: ResultsFile;
  readonly #known: IdSet;
  readonly #written: WrittenOutputs;
  readonly #unlock: () => Promise<void>;
  readonly #reading: Reading;
  #outputs: Promise<Map<string, Record<string, string>>> | undefined;

  private constructor(access: BatchAccess, id: string, out: string, opened: Opened, reading: Reading) {
    this.#access = access;
    this.#reading = reading;
    this.#id = id;
    this.#out = out;
    this.#file = opened.file;
    this.#known = opened.known;
    this.#written = opened.written;
    this.#unlock = opened.unlock;
  }

  /** Opens the file, and continues that of an earlier call for the same batch. */
  static async open(access: BatchAccess, id: string, out: string, reading: Reading): Promise<AttachedFile> {
    // What is read of a pipe or a terminal would be what this process writes, or what somebody types.
    const isRegular = await mayBeRegular(out);
    const unlock = isRegular ? await lockFile(out) : async () => {};
    try {
      const { manifest, finished } = isRegular ? await readEarlier(out) : noEarlier();
      const how = manifest?.detached === id ? 'resume' : 'new';
      const written = isRegular ? await WrittenOutputs.open(`${out}.outputs`, how) : WrittenOutputs.inMemory();
      const file = await ResultsFile.open(out, how, await readOwnManifest(access, id));
      const known = how === 'resume' ? finished : new IdSet();
      return new AttachedFile(access, id, out, { file, known, written, unlock }, reading);
    } catch (error) {
      await unlock();
      throw error;
    }
  }

  /** Tells whether an earlier call has written the result. */
  has(id: string): boolean {
    return this.#known.has(id);
  }

  /**
   * Writes the outputs of a task, then its line, and returns it with the paths on this machine. When an output cannot
   * be read now, or the disk has no room for it, no line is written, so that a later call fetches both.
   */
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
            (cause: unknown) => {
              this.#reading.signal?.throwIfAborted();
              if (isShellfleetError(cause) && cause.code === 'QUEUE_UNAVAILABLE') throw cause;
              if (isOfTheDisk(cause)) throw diskFailed(cause);
              return { error: ensureShellfleetError(cause).toJSON() };
            },
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
    if (template === undefined || !isVisibleBelow(template))
      throw new ShellfleetError('FILE_DENIED', `The task has no output ${path} below this directory.`, { path });
    const [place] = outputPlaces({ [path]: template }, task, repeat);
    if (place !== undefined && !isVisibleBelow(relative('.', place.local)))
      throw new ShellfleetError('FILE_DENIED', `${place.local} is hidden, so nothing was written there.`, { path });
    const packed = await readOutput(this.#access, this.#id, run, path, this.#reading.retry);
    if (place === undefined || packed === undefined)
      throw new ShellfleetError('FILE_NOT_FOUND', `${path} is not stored any more.`, { path });
    await refuseLinks(resolve('.'), place.local);
    await this.#written.claim(place.local);
    await unpackTo(packed, place.local, place.isOwn ? 'replace' : 'merge', MOST_UNPACKED);
    return place.local;
  }

  /** Reads the paths of the outputs of all tasks, as they were submitted. */
  async #readOutputs(): Promise<Map<string, Record<string, string>>> {
    const byTask = new Map<string, Record<string, string>>();
    /** Most tasks have the same paths, which are held once. */
    const same = new Map<string, Record<string, string>>();
    for await (const { task } of readTasks(this.#access, this.#id, this.#reading.retry)) {
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
    await using _lock = { [Symbol.asyncDispose]: this.#unlock };
    await using _written = this.#written;
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

function diskFailed(cause: unknown): ShellfleetError {
  const { message, context } = ensureShellfleetError(cause);
  const text = `${message} Make room there: another attach to the same file of results continues with this task.`;
  return new ShellfleetError('FILE_DENIED', text, context, { cause });
}

/** Tells whether a path is a file, or may become one. A pipe or a device is written to only. */
async function mayBeRegular(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined || found.isFile();
}
