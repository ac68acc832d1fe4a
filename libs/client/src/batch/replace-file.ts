import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rename } from 'node:fs/promises';

/** Replaces the file in one step. Readers, and a writer that is killed, leave either the old file or the new one. */
export async function replaceInOneStep(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const next = `${path}.${randomUUID()}`;
  await using file = await open(next, 'wx');
  await write(file);
  await rename(next, path);
}
