import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { HostUser } from './host-user.ts';

// One directory for each session that names no workspace. The session's user owns it; it is created and removed with
// the sandbox. Only the worker can enter the parent directory. Each session has its directory mounted.

const run = promisify(execFile);
const PREFIX = 'shellfleet-';

export interface TemporaryWorkspaces {
  create(name: string): Promise<string>;
  at(name: string): string;
  /** Removes a directory. Does nothing when it is missing. */
  remove(name: string): Promise<void>;
  names(): Promise<string[]>;
}

export async function openTemporaryWorkspaces(parent: string, user: HostUser): Promise<TemporaryWorkspaces> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  // The launcher refuses a path that contains a link.
  const directory = await realpath(parent);
  const pathOf = (name: string) => join(directory, PREFIX + name);
  return {
    at: pathOf,
    async create(name) {
      const path = pathOf(name);
      await mkdir(path, { mode: 0o700 });
      await chmod(path, 0o700);
      if (!user.isOurs) await chown(path, user.uid, user.gid);
      return path;
    },
    async remove(name) {
      await removeTree(pathOf(name));
    },
    async names() {
      const found = await readdir(directory);
      return found.filter((name) => name.startsWith(PREFIX)).map((name) => name.slice(PREFIX.length));
    },
  };
}

/**
 * Removes the directory with rm(1), because a session can create paths that are too long for any call. Without root,
 * first restores the permissions of directories that the session made inaccessible.
 */
async function removeTree(path: string): Promise<void> {
  const remove = () => run('rm', ['-rf', '--', path]);
  await remove().catch(async () => {
    await run('chmod', ['-R', 'u+rwX', '--', path]);
    await remove();
  });
}
