import type { Dirent, Stats } from 'node:fs';
import { lstat, opendir, readFile, readlink, stat } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { WrittenEntry } from '@shellfleet/protocol';
import { cut, digestOf, PART_BYTES, sendParts, toParts } from './file-parts.ts';
import { type DoneStep, type FileSteps, SameSandbox } from './file-steps.ts';
import type { TransferOptions } from './files.ts';
import { localDenied } from './local-error.ts';
import { PERMISSIONS, readLocalFile } from './local-file.ts';
import type { Progress } from './progress.ts';

/** Files of more bytes are sent in steps of their own. */
const SMALL_BYTES = 262_144;
const BUNDLE_BYTES = 393_216;
const BUNDLE_ENTRIES = 1_000;
const BUNDLES_AHEAD = 4;
/** Permissions with which the owner can write into a directory. */
const OWNER = 0o700;

/** Copies the contents of a local directory to a directory of the sandbox. `nextId` makes ULIDs. */
export async function uploadDirectory(
  steps: FileSteps,
  localPath: string,
  path: string,
  nextId: () => string,
  progress: Progress,
  { signal }: TransferOptions,
): Promise<void> {
  const bundles = new Bundles(steps, path);
  /** Directories whose own mode would prevent writing into them. Their modes are set at the end. */
  const closed: WrittenEntry[] = [];
  const addDirectory = async (name: string, mode: number) => {
    if ((mode & OWNER) !== OWNER) closed.push({ kind: 'mode', name, mode });
    await bundles.add({ kind: 'directory', name, mode: mode | OWNER }, 0);
  };
  await addDirectory('.', (await stat(localPath)).mode & PERMISSIONS);
  for await (const { name, local, found } of walkLocal(localPath)) {
    signal?.throwIfAborted();
    const mode = found.mode & PERMISSIONS;
    if (found.isDirectory()) await addDirectory(name, mode);
    else if (found.isSymbolicLink()) {
      const target = await readlink(local);
      await bundles.add({ kind: 'symlink', name, mode, data: Buffer.from(target).toString('base64') }, target.length);
    } else if (!found.isFile()) {
      throw localDenied(local, 'is neither a file nor a directory nor a symbolic link, so it is not copied');
    } else {
      const small = found.size <= SMALL_BYTES ? await readFile(local) : undefined;
      if (small !== undefined && small.byteLength <= SMALL_BYTES) {
        await bundles.add({ kind: 'file', name, mode, data: small.toString('base64') }, small.byteLength);
        progress.add(small.byteLength, 1);
      } else {
        const parts = small === undefined ? toParts(readLocalFile(local, PART_BYTES)) : cut(small);
        const whole = () => digestOf(readLocalFile(local, PART_BYTES));
        const file = { path: posix.join(path, name), transfer: nextId(), mode, whole };
        const onSent = (bytes: number) => progress.add(bytes, 0);
        await Promise.all(await sendParts(steps, file, parts, { signal, onSent, sandbox: bundles.sandbox }));
        progress.add(0, 1);
      }
    }
  }
  await bundles.settle();
  // Sets the modes of the deepest directories first, because a closed directory cannot be passed.
  for (const entry of closed.reverse()) await bundles.add(entry, 0);
  await bundles.settle();
}

/** Yields everything below the directory, each directory before its contents. Links are not followed. */
export async function* walkLocal(
  directory: string,
  below = '',
): AsyncGenerator<{ name: string; local: string; found: Stats }> {
  for await (const entry of (await opendir(directory)) as AsyncIterable<Dirent>) {
    const name = below === '' ? entry.name : `${below}/${entry.name}`;
    const local = join(directory, entry.name);
    const found = await lstat(local);
    yield { name, local, found };
    if (found.isDirectory()) yield* walkLocal(local, name);
  }
}

/** Sends items in groups, several groups at a time. */
class Bundles {
  readonly sandbox: SameSandbox;
  readonly #steps: FileSteps;
  readonly #path: string;
  readonly #underWay = new Set<Promise<unknown>>();
  #entries: WrittenEntry[] = [];
  #bytes = 0;

  constructor(steps: FileSteps, path: string) {
    this.#steps = steps;
    this.#path = path;
    this.sandbox = new SameSandbox(path);
  }

  async add(entry: WrittenEntry, bytes: number): Promise<void> {
    if (this.#bytes + bytes > BUNDLE_BYTES) await this.#send();
    this.#entries.push(entry);
    this.#bytes += bytes;
    if (this.#entries.length >= BUNDLE_ENTRIES) await this.#send();
  }

  /** Resolves when everything that was added is in the sandbox. */
  async settle(): Promise<void> {
    await this.#send();
    await Promise.all(this.#underWay);
  }

  async #send(): Promise<void> {
    const entries = this.#entries;
    if (entries.length === 0) return;
    this.#entries = [];
    this.#bytes = 0;
    const sent = await this.#steps.send({ name: 'unpack', path: this.#path, entries });
    const done: Promise<DoneStep> = sent.reply().then((step) => this.sandbox.check(step));
    // A failed group stays in the set, so that settle() rejects with its error.
    const underWay: Promise<unknown> = done.then(() => this.#underWay.delete(underWay));
    underWay.catch(() => {});
    this.#underWay.add(underWay);
    if (this.#underWay.size >= BUNDLES_AHEAD) await Promise.race(this.#underWay);
  }
}
