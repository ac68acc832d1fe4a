import { posix } from 'node:path';
import { abortable } from '@shellfleet/concurrency';
import type { FileRecord, FileReply } from '@shellfleet/protocol';
import { notCopied } from './copied-name.ts';
import { readParts } from './file-parts.ts';
import { doStep, type FileSteps, SameSandbox } from './file-steps.ts';
import type { TransferOptions } from './files.ts';
import { toLocalError } from './local-error.ts';
import type { LocalFile } from './local-file.ts';
import { LocalTree } from './local-tree.ts';
import type { Progress } from './progress.ts';
import { walk } from './walk.ts';

const SMALL_BYTES = 262_144;
const BATCH_BYTES = 524_288;
const BATCH_FILES = 500;
const BATCHES_AHEAD = 3;
const WRITES_AT_ONCE = 16;
const UNREADABLE = 'may not be read by the user of the sandbox';

export async function downloadDirectory(
  steps: FileSteps,
  path: string,
  localPath: string,
  progress: Progress,
  { signal }: TransferOptions,
): Promise<void> {
  try {
    await copyDirectory(steps, path, new LocalTree(localPath, path), progress, signal);
  } catch (error) {
    throw toLocalError(localPath, error);
  }
}

/** What is known of a file before it is copied. Its size is exact unless it changes meanwhile. */
export interface CopiedFile {
  size: number;
  mode: number;
  modifiedAt: Date;
}

/** What a directory of a sandbox is copied to. Names are relative to it, and are not trusted. */
export interface CopyTarget {
  /** Begins the directory itself. */
  begin(mode: number): Promise<void>;
  /** Throws FILE_DENIED or PATH_INVALID for a name that is not copied. */
  check(name: string): Promise<unknown>;
  makeDirectory(name: string, mode: number, modifiedAt: Date): Promise<void>;
  /** Opens a file, whose name was checked, for writing. */
  openFile(name: string, about: CopiedFile): Promise<LocalFile>;
  addLink(name: string, target: string): Promise<void>;
  finish(): Promise<void>;
}

/** Copies a directory of the sandbox, with several files under way at the same time. */
export async function copyDirectory(
  steps: FileSteps,
  path: string,
  target: CopyTarget,
  progress: Progress,
  signal: AbortSignal | undefined,
): Promise<void> {
  await new DirectoryCopy(steps, path, target, progress, signal).run();
}

class DirectoryCopy {
  readonly #steps: FileSteps;
  readonly #path: string;
  readonly #tree: CopyTarget;
  readonly #progress: Progress;
  /** Ends the batches that are under way when the copy fails. */
  readonly #failed = new AbortController();
  readonly #signal: AbortSignal;
  readonly #sandbox: SameSandbox;
  readonly #underWay = new Set<Promise<unknown>>();
  #batch: FileRecord[] = [];
  #batchBytes = 0;

  constructor(steps: FileSteps, path: string, tree: CopyTarget, progress: Progress, signal: AbortSignal | undefined) {
    this.#steps = steps;
    this.#path = path;
    this.#tree = tree;
    this.#progress = progress;
    this.#signal = AbortSignal.any([this.#failed.signal, ...(signal === undefined ? [] : [signal])]);
    this.#sandbox = new SameSandbox(path);
  }

  /** Rejects when no file is being written any more, so that a process that ends then leaves no incomplete file. */
  async run(): Promise<void> {
    try {
      await this.#copyAll();
    } catch (error) {
      this.#failed.abort(error);
      await Promise.allSettled(this.#underWay);
      throw error;
    }
  }

  async #copyAll(): Promise<void> {
    const { records = [] } = this.#sandbox.check(await doStep(this.#steps, { name: 'stat', path: `${this.#path}/.` }));
    await this.#tree.begin(records[0]?.mode ?? 0o755);
    for await (const page of walk(this.#steps, this.#path, 0, { signal: this.#signal, sandbox: this.#sandbox })) {
      for (const record of page) await this.#copy(record);
    }
    await this.#sendBatch();
    await Promise.all(this.#underWay);
    await this.#tree.finish();
  }

  async #copy(record: FileRecord): Promise<void> {
    this.#signal.throwIfAborted();
    await this.#tree.check(record.name);
    switch (record.type) {
      case 'directory':
        if (record.unreadable) throw notCopied(this.#sandboxPath(record), UNREADABLE);
        await this.#tree.makeDirectory(record.name, record.mode, timeOf(record));
        break;
      case 'symlink':
        await this.#tree.addLink(record.name, record.target ?? '');
        break;
      case 'file':
        if (record.size > SMALL_BYTES) await this.#copyLarge(record);
        else await this.#addToBatch(record);
        break;
      case 'other':
        throw notCopied(this.#sandboxPath(record), 'is neither a file nor a directory nor a symbolic link');
    }
  }

  async #copyLarge(record: FileRecord): Promise<void> {
    let file: LocalFile | undefined;
    let mode = record.mode;
    try {
      const from = { signal: this.#signal, sandbox: this.#sandbox };
      for await (const part of readParts(this.#steps, this.#sandboxPath(record), from)) {
        mode = part.mode;
        file ??= await this.#tree.openFile(record.name, { size: part.size, mode, modifiedAt: timeOf(record) });
        await file.write(part.data);
        this.#progress.add(part.data.byteLength, 0);
      }
      await file?.finish(mode);
    } catch (error) {
      await file?.discard();
      throw error;
    }
    this.#progress.add(0, 1);
  }

  async #addToBatch(record: FileRecord): Promise<void> {
    if (this.#batchBytes + record.size > BATCH_BYTES || this.#batch.length >= BATCH_FILES) await this.#sendBatch();
    this.#batch.push(record);
    this.#batchBytes += record.size;
  }

  async #sendBatch(): Promise<void> {
    const batch = this.#batch;
    if (batch.length === 0) return;
    this.#batch = [];
    this.#batchBytes = 0;
    const names = batch.map(({ name }) => name);
    const sent = await this.#steps.send({ name: 'pack', path: this.#path, names });
    const reply = abortable(sent.reply(), this.#signal);
    const done = reply.then((step) => this.#writeBatch(batch, this.#sandbox.check(step)));
    // A failed write stays in the set, so that the copy rejects with its error.
    const underWay: Promise<unknown> = done.then(() => this.#underWay.delete(underWay));
    underWay.catch(() => {});
    this.#underWay.add(underWay);
    if (this.#underWay.size >= BATCHES_AHEAD) await Promise.race(this.#underWay);
  }

  async #writeBatch(batch: readonly FileRecord[], { files = [] }: FileReply): Promise<void> {
    for (let at = 0; at < batch.length; at += WRITES_AT_ONCE) {
      const records = batch.slice(at, at + WRITES_AT_ONCE);
      const written = records.map((record, index) => this.#writeSmall(record, files[at + index]));
      // After a failure too, no file is left half written.
      await Promise.allSettled(written);
      await Promise.all(written);
    }
  }

  async #writeSmall(record: FileRecord, file: NonNullable<FileReply['files']>[number] | undefined): Promise<void> {
    this.#signal.throwIfAborted();
    switch (file?.state) {
      case 'read': {
        const data = Buffer.from(file.data, 'base64');
        const about = { size: data.byteLength, mode: file.mode, modifiedAt: timeOf(record) };
        const written = await this.#tree.openFile(record.name, about);
        try {
          await written.write(data);
          await written.finish(file.mode);
        } catch (error) {
          await written.discard();
          throw error;
        }
        this.#progress.add(data.byteLength, 1);
        break;
      }
      case 'no-room': // The file has grown since the list was read.
        return this.#copyLarge(record);
      case 'gone': // The file was removed since the list was read.
        break;
      default:
        throw notCopied(this.#sandboxPath(record), UNREADABLE);
    }
  }

  #sandboxPath({ name }: FileRecord): string {
    return posix.join(this.#path, name);
  }
}

const timeOf = ({ modifiedAt }: FileRecord) => new Date(modifiedAt);
