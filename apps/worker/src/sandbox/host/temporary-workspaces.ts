import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, readdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { HostUser } from './host-user.ts';

// A folder for each session that names no workspace of its own: made with it, its user's alone, removed with it. They lie where
// nobody but the worker gets to; a session sees its own, mounted, and no other.

const PREFIX = 'shellfleet-';

export interface TemporaryWorkspaces {
  create(name: string): Promise<string>;
  /** Of one that is not there: no-op. */
  remove(name: string): Promise<void>;
  /** Of all that there are. */
  names(): Promise<string[]>;
}

export async function openTemporaryWorkspaces(parent: string, user: HostUser): Promise<TemporaryWorkspaces> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  // The launcher takes no path with a link in it.
  const folder = await realpath(parent);
  const pathOf = (name: string) => join(folder, PREFIX + name);
  return {
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
      const found = await readdir(folder);
      return found.filter((name) => name.startsWith(PREFIX)).map((name) => name.slice(PREFIX.length));
    },
  };
}

/** A worker that is not root is kept out by what a session has closed to itself. */
async function removeTree(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(async () => {
    await promisify(execFile)('chmod', ['-R', 'u+rwX', '--', path]);
    await rm(path, { recursive: true, force: true });
  });
}
