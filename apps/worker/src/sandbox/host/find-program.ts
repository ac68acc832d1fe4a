import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';

/** Directories of the system's programs, also for sessions. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Returns the path of a system program. PATH is not used, because other users may write to its directories. */
export async function findSystemProgram(name: string, path = SYSTEM_PATH): Promise<string | undefined> {
  for (const directory of path.split(':')) {
    const path = join(directory, name);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  return undefined;
}
