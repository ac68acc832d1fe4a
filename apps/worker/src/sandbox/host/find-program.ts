import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';

/** Where a system keeps its programs: sessions have the same. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The path of one of the system's programs. Not of this process's PATH, which may have folders that others can write to. */
export async function findSystemProgram(name: string, path = SYSTEM_PATH): Promise<string | undefined> {
  for (const folder of path.split(':')) {
    const path = join(folder, name);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  return undefined;
}
