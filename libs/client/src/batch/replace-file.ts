import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';

/** Replaces the file in one step. Readers, and a writer that is killed, leave either the old file or the new one. */
export async function replaceInOneStep(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const next = `${path}.${randomUUID()}`;
  await using file = await open(next, 'wx');
  try {
    await write(file);
    // After a crash of the machine, the path must not name a file without its content.
    await file.datasync();
    await rename(next, path);
  } catch (cause) {
    await rm(next, { force: true }).catch(() => {});
    throw cause;
  }
}
