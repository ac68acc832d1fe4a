import { chmod, lstat, mkdir, symlink, unlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { type FileRecord, type FileReply, ShellfleetError } from '@shellfleet/protocol';
import { readParts } from './file-parts.ts';
import { doStep, type FileSteps, SameSandbox } from './file-steps.ts';
import type { TransferOptions } from './files.ts';
import { localDenied, toLocalError } from './local-error.ts';
import { PERMISSIONS, replaceFile, statIfThere } from './local-file.ts';
import type { Progress } from './progress.ts';
import { walk } from './walk.ts';

// Copies a directory of a sandbox, whose replies are not trusted.
// DOWN-1. Nothing is written outside of the local directory: names have only plain parts, and links are made last.
// DOWN-2. Each file is complete or absent.

const SMALL_BYTES = 262_144;
const BATCH_BYTES = 524_288;
const BATCH_FILES = 500;
const BATCHES_AHEAD = 3;
const WRITES_AT_ONCE = 16;
/** Permissions with which the owner can write into a directory. */
const OWNER = 0o700;

export async function downloadDirectory(
  steps: FileSteps,
  path: string,
  localPath: string,
  progress: Progress,
  { signal }: TransferOptions,
): Promise<void> {
  const copy = new DirectoryCopy(steps, path, localPath, progress, signal);
  try {
    await copy.run();
  } catch (error) {
    throw toLocalError(localPath, error);
  }
}

class DirectoryCopy {
  readonly #steps: FileSteps;
  readonly #path: string;
  readonly #localPath: string;
  readonly #progress: Progress;
  readonly #signal: AbortSignal | undefined;
  readonly #sandbox: SameSandbox;
  /** The directory that was checked last. Files arrive directory by directory, so most need no further check. */
  #checked = '';
  readonly #links: { local: string; target: string }[] = [];
  /** Directories whose own mode would prevent writing into them. Their modes are set at the end. */
  readonly #closed: { local: string; mode: number }[] = [];
  readonly #underWay = new Set<Promise<unknown>>();
  #batch: FileRecord[] = [];
  #batchBytes = 0;

  constructor(steps: FileSteps, path: string, localPath: string, progress: Progress, signal: AbortSignal | undefined) {
    this.#steps = steps;
    this.#path = path;
    this.#localPath = localPath;
    this.#progress = progress;
    this.#signal = signal;
    this.#sandbox = new SameSandbox(path);
  }

  async run(): Promise<void> {
    const { records = [] } = this.#sandbox.check(await doStep(this.#steps, { name: 'stat', path: `${this.#path}/.` }));
    const isNew = (await statIfThere(this.#localPath)) === undefined;
    await mkdir(this.#localPath, { recursive: true });
    if (isNew) await this.#setMode(this.#localPath, records[0]?.mode ?? 0o755);
    for await (const page of walk(this.#steps, this.#path, 0, { signal: this.#signal, sandbox: this.#sandbox })) {
      for (const record of page) await this.#copy(record);
    }
    await this.#sendBatch();
    await Promise.all(this.#underWay);
    for (const { local, target } of this.#links) await this.#makeLink(local, target);
    for (const { local, mode } of this.#closed.reverse()) await chmod(local, mode);
  }

  async #copy(record: FileRecord): Promise<void> {
    this.#signal?.throwIfAborted();
    const local = await this.#toLocal(record.name);
    switch (record.type) {
      case 'directory':
        if (record.unreadable) throw denied(this.#sandboxPath(record), 'may not be read by the user of the sandbox');
        await this.#makeDirectory(local, record.mode);
        break;
      case 'symlink':
        this.#links.push({ local, target: record.target ?? '' });
        break;
      case 'file':
        if (record.size > SMALL_BYTES) await this.#copyLarge(record);
        else await this.#addToBatch(record);
        break;
      case 'other':
        throw denied(this.#sandboxPath(record), 'is neither a file nor a directory nor a symbolic link');
    }
  }

  /** Returns the local path of a name, after the checks of DOWN-1. */
  async #toLocal(name: string): Promise<string> {
    if (name.includes('\uFFFD')) throw denied(posix.join(this.#path, name), 'has a name that is not UTF-8');
    if (!isPlain(name)) throw denied(`${this.#path}/${name}`, 'is no name below that directory');
    const local = join(this.#localPath, ...name.split('/'));
    const parent = dirname(local);
    if (parent !== this.#checked) {
      await this.#checkWay(name.split('/').slice(0, -1));
      this.#checked = parent;
    }
    return local;
  }

  async #checkWay(names: readonly string[]): Promise<void> {
    let local = this.#localPath;
    for (const name of names) {
      local = join(local, name);
      const found = await lstat(local);
      if (found.isSymbolicLink()) throw localDenied(local, 'is a symbolic link, which is not followed');
      if (!found.isDirectory()) throw localDenied(local, 'is not a directory', 'PATH_INVALID');
    }
  }

  async #makeDirectory(local: string, mode: number): Promise<void> {
    const found = await statIfThere(local, lstat);
    if (found === undefined) {
      await mkdir(local, OWNER);
      return this.#setMode(local, mode);
    }
    if (found.isSymbolicLink()) throw localDenied(local, 'is a symbolic link, which is not followed');
    if (!found.isDirectory()) throw localDenied(local, 'is not a directory', 'PATH_INVALID');
  }

  async #setMode(local: string, mode: number): Promise<void> {
    const bits = mode & PERMISSIONS;
    if ((bits & OWNER) !== OWNER) this.#closed.push({ local, mode: bits });
    await chmod(local, bits | OWNER);
  }

  async #makeLink(local: string, target: string): Promise<void> {
    const found = await statIfThere(local, lstat);
    if (found?.isSymbolicLink() === true || found?.isFile() === true) await unlink(local);
    else if (found !== undefined) throw localDenied(local, 'is in the way of a symbolic link');
    await symlink(target, local);
  }

  async #copyLarge(record: FileRecord): Promise<void> {
    const local = await this.#toLocal(record.name);
    let file: Awaited<ReturnType<typeof replaceFile>> | undefined;
    let mode = record.mode;
    try {
      const from = { signal: this.#signal, sandbox: this.#sandbox };
      for await (const part of readParts(this.#steps, this.#sandboxPath(record), from)) {
        file ??= await this.#openFile(local);
        mode = part.mode;
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
    const done = sent.reply().then((step) => this.#writeBatch(batch, this.#sandbox.check(step)));
    // A failed write stays in the set, so that the copy rejects with its error.
    const underWay: Promise<unknown> = done.then(() => this.#underWay.delete(underWay));
    underWay.catch(() => {});
    this.#underWay.add(underWay);
    if (this.#underWay.size >= BATCHES_AHEAD) await Promise.race(this.#underWay);
  }

  async #writeBatch(batch: readonly FileRecord[], { files = [] }: FileReply): Promise<void> {
    for (let at = 0; at < batch.length; at += WRITES_AT_ONCE) {
      const records = batch.slice(at, at + WRITES_AT_ONCE);
      await Promise.all(records.map((record, index) => this.#writeSmall(record, files[at + index])));
    }
  }

  async #writeSmall(record: FileRecord, file: NonNullable<FileReply['files']>[number] | undefined): Promise<void> {
    switch (file?.state) {
      case 'read': {
        const data = Buffer.from(file.data, 'base64');
        const written = await this.#openFile(join(this.#localPath, ...record.name.split('/')));
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
        throw denied(this.#sandboxPath(record), 'may not be read by the user of the sandbox');
    }
  }

  /** Opens a file that replaces a file or link at the path. Rejects if anything else is at the path. */
  async #openFile(local: string) {
    const found = await statIfThere(local, lstat);
    if (found !== undefined && !found.isFile() && !found.isSymbolicLink())
      throw localDenied(local, 'is not a file', found.isDirectory() ? 'FILE_IS_DIRECTORY' : 'FILE_DENIED');
    return replaceFile(local);
  }

  #sandboxPath({ name }: FileRecord): string {
    return posix.join(this.#path, name);
  }
}

/** Tells whether a name has only plain parts: not empty, `.` or `..`, nor special on this machine. */
function isPlain(name: string): boolean {
  if (name.includes('\0') || (process.platform === 'win32' && /[\\:]/.test(name))) return false;
  return name.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

function denied(path: string, why: string): ShellfleetError {
  return new ShellfleetError('FILE_DENIED', `${path} ${why}, so the directory is not copied.`, { path });
}
