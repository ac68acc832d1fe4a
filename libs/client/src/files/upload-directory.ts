import type { Dirent, Stats } from 'node:fs';
import { lstat, opendir, readFile, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, PART_BYTES } from './file-parts.ts';
import type { FileSteps } from './file-steps.ts';
import type { TransferOptions } from './files.ts';
import { localDenied } from './local-error.ts';
import { PERMISSIONS, readLocalFile } from './local-file.ts';
import type { Progress } from './progress.ts';
import { type SentItem, sendDirectory } from './send-directory.ts';

/** Copies the contents of a local directory to a directory of the sandbox. `nextId` makes ULIDs. */
export async function uploadDirectory(
  steps: FileSteps,
  localPath: string,
  path: string,
  nextId: () => string,
  progress: Progress,
  { signal }: TransferOptions,
): Promise<void> {
  await sendDirectory(steps, path, localItems(localPath), nextId, progress, signal);
}

async function* localItems(localPath: string): AsyncGenerator<SentItem> {
  yield { type: 'directory', name: '.', mode: (await stat(localPath)).mode & PERMISSIONS };
  for await (const { name, local, found } of walkLocal(localPath)) {
    const mode = found.mode & PERMISSIONS;
    if (found.isDirectory()) yield { type: 'directory', name, mode };
    else if (found.isSymbolicLink()) yield { type: 'symlink', name, mode, target: await readlink(local) };
    else if (found.isFile()) {
      const pieces = () => readLocalFile(local, PART_BYTES);
      const whole = () => digestOf(pieces());
      yield { type: 'file', name, mode, size: found.size, read: () => readFile(local), pieces, whole };
    } else throw localDenied(local, 'is neither a file nor a directory nor a symbolic link, so it is not copied');
  }
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
