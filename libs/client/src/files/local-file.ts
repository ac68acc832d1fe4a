import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { constants, createReadStream } from 'node:fs';
import { type FileHandle, lstat, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { localDenied } from './local-error.ts';

/** Permission bits without setuid, setgid and sticky, which must not come from a sandbox. */
export const PERMISSIONS = 0o777;

export interface LocalFile {
  write(data: Uint8Array): Promise<void>;
  /** Puts the file in its place. */
  finish(mode: number): Promise<void>;
  /** Discards the new file and keeps the earlier one. */
  discard(): Promise<void>;
}

/** Opens the target of a download. A device or FIFO is opened itself; any other target is replaced by a new file. */
export async function openLocalFile(localPath: string): Promise<LocalFile> {
  const found = await statIfThere(localPath);
  if (found === undefined) {
    if (await isLink(localPath)) throw localDenied(localPath, 'is a symbolic link to nothing');
    return replaceFile(resolve(localPath));
  }
  if (found.isDirectory()) throw localDenied(localPath, 'is a directory', 'FILE_IS_DIRECTORY');
  // A path in these directories refers to an open file. A new file under the path would not reach it.
  if (!found.isFile() || /^\/(dev|proc)\//.test(resolve(localPath))) return writeTo(localPath);
  return replaceFile(await realpath(localPath));
}

/** Opens a new file. When it is complete, it replaces the file or symbolic link at the path. */
export async function replaceFile(localPath: string): Promise<LocalFile> {
  const part = join(dirname(localPath), `.shellfleet-${randomBytes(8).toString('hex')}.part`);
  const file = await open(part, 'wx', 0o600);
  return {
    write: (data) => writeWhole(file, data),
    async finish(mode) {
      await file.chmod(mode & PERMISSIONS);
      await file.close();
      await rename(part, localPath);
    },
    async discard() {
      await file.close().catch(() => {});
      await rm(part, { force: true });
    },
  };
}

async function writeTo(localPath: string): Promise<LocalFile> {
  const file = await open(localPath, constants.O_WRONLY);
  return {
    write: (data) => writeWhole(file, data),
    finish: () => file.close(),
    discard: () => file.close(),
  };
}

/** Writes all data. A FIFO may accept only a part of it per write. */
async function writeWhole(file: FileHandle, data: Uint8Array): Promise<void> {
  for (let done = 0; done < data.byteLength; ) {
    const { bytesWritten } = await file.write(data, done, data.byteLength - done, null);
    done += bytesWritten;
  }
}

export function readLocalFile(localPath: string, pieceBytes: number): AsyncIterable<Uint8Array> {
  return createReadStream(localPath, { highWaterMark: pieceBytes });
}

export async function statIfThere(
  localPath: string,
  how: typeof stat | typeof lstat = stat,
): Promise<Stats | undefined> {
  return (how as (path: string) => Promise<Stats>)(localPath).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}

async function isLink(localPath: string): Promise<boolean> {
  return (await statIfThere(localPath, lstat))?.isSymbolicLink() === true;
}
