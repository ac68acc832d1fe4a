import { chmod, lstat, mkdir, symlink, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { checkCopiedName } from './copied-name.ts';
import { localDenied } from './local-error.ts';
import { type LocalFile, PERMISSIONS, replaceFile, statIfThere } from './local-file.ts';

// Writes a directory whose names and contents come from a sandbox, and are not trusted.
// DOWN-1. Nothing is written outside of the local directory: names have only plain parts, and links are made last.
// DOWN-2. Each file is complete or absent.

/** Permissions with which the owner can write into a directory. */
const OWNER = 0o700;

/** A local directory that becomes a copy of one in a sandbox. Names are relative to it, with slashes. */
export class LocalTree {
  readonly #localPath: string;
  readonly #source: string;
  /** The directory that was checked last. Files arrive directory by directory, so most need no further check. */
  #checked = '';
  readonly #links: { local: string; target: string }[] = [];
  /** Directories whose own mode would prevent writing into them. Their modes are set at the end. */
  readonly #closed: { local: string; mode: number }[] = [];

  /** `source` is the path of the original, for messages. */
  constructor(localPath: string, source: string) {
    this.#localPath = localPath;
    this.#source = source;
  }

  /** Creates the directory itself. One that exists keeps its mode. */
  async begin(mode: number): Promise<void> {
    const isNew = (await statIfThere(this.#localPath)) === undefined;
    await mkdir(this.#localPath, { recursive: true });
    if (isNew) await this.#setMode(this.#localPath, mode);
  }

  /** Returns the local path of a name, after the checks of DOWN-1. Throws FILE_DENIED or PATH_INVALID. */
  async check(name: string): Promise<string> {
    checkCopiedName(name, this.#source);
    const local = this.#toLocal(name);
    const parent = dirname(local);
    if (parent !== this.#checked) {
      await this.#checkWay(name.split('/').slice(0, -1));
      this.#checked = parent;
    }
    return local;
  }

  async makeDirectory(name: string, mode: number): Promise<void> {
    const local = await this.check(name);
    const found = await statIfThere(local, lstat);
    if (found === undefined) {
      await mkdir(local, OWNER);
      return this.#setMode(local, mode);
    }
    if (found.isSymbolicLink()) throw localDenied(local, 'is a symbolic link, which is not followed');
    if (!found.isDirectory()) throw localDenied(local, 'is not a directory', 'PATH_INVALID');
  }

  /** Opens a file, whose name was checked, for writing. Rejects if neither a file nor a link nor nothing is there. */
  async openFile(name: string): Promise<LocalFile> {
    const local = this.#toLocal(name);
    const found = await statIfThere(local, lstat);
    if (found !== undefined && !found.isFile() && !found.isSymbolicLink())
      throw localDenied(local, 'is not a file', found.isDirectory() ? 'FILE_IS_DIRECTORY' : 'FILE_DENIED');
    return replaceFile(local);
  }

  async addLink(name: string, target: string): Promise<void> {
    this.#links.push({ local: await this.check(name), target });
  }

  /** Makes the links, and gives the directories their modes. */
  async finish(): Promise<void> {
    for (const { local, target } of this.#links) await this.#makeLink(local, target);
    for (const { local, mode } of this.#closed.reverse()) await chmod(local, mode);
  }

  #toLocal(name: string): string {
    return join(this.#localPath, ...name.split('/'));
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
}
