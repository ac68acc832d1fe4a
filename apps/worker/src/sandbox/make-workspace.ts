import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir } from 'node:fs/promises';
import { ShellfleetError } from '@shellfleet/protocol';

// Creates a missing workspace below a directory that the operator lists. A session that may write on the way to it can
// put links there at any time. So every directory is opened relative to its parent, and no link is followed.

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

interface Owner {
  uid: number;
  gid: number;
}

/**
 * Creates the directory unless it exists. `path` was checked to be below one of `allowed`. Throws SANDBOX_UNAVAILABLE.
 */
export async function makeWorkspace(path: string, allowed: readonly string[], owner: Owner): Promise<void> {
  const listed = allowed
    .map((directory) => directory.replace(/\/+$/, ''))
    .filter((directory) => path.startsWith(`${directory}/`));
  const top = listed.sort((a, b) => a.length - b.length)[0];
  if (top === undefined || (await isThere(path))) return;
  const names = path.slice(top.length).split('/').filter(Boolean);
  let at = await openDirectory(top, path);
  try {
    for (const [index, name] of names.entries()) {
      const inside = `/proc/self/fd/${at.fd}/${name}`;
      const isNew = await makeDirectory(inside, path);
      const next = await openDirectory(inside, path);
      await at.close();
      at = next;
      if (isNew && index === names.length - 1) await giveAway(at, owner, path);
    }
  } finally {
    await at.close();
  }
}

async function isThere(path: string): Promise<boolean> {
  const found = await open(path, DIRECTORY).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error) return found.code !== 'ENOENT';
  await found.close();
  return true;
}

/** Creates a directory. Returns false when it existed. */
async function makeDirectory(inside: string, path: string): Promise<boolean> {
  try {
    await mkdir(inside, { mode: 0o755 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw notMade(path, error);
  }
}

function openDirectory(inside: string, path: string): Promise<FileHandle> {
  return open(inside, DIRECTORY).catch((error: unknown) => {
    throw notMade(path, error);
  });
}

/** Changes the owner, unless another session has replaced the directory since its creation. */
async function giveAway(directory: FileHandle, { uid, gid }: Owner, path: string): Promise<void> {
  const { uid: maker } = await directory.stat();
  if (maker !== process.geteuid?.() || (await readdir(`/proc/self/fd/${directory.fd}`)).length > 0)
    throw notMade(path, new Error('it was replaced meanwhile'));
  if (maker === uid) return;
  await directory.chown(uid, gid).catch((error: unknown) => {
    throw notMade(path, error);
  });
}

function notMade(path: string, cause: unknown): ShellfleetError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const issues = [{ path: 'workspace', message: `is missing, and cannot be made: ${reason}` }];
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The host cannot make the directory ${path} for the session: ${reason}. Make it there, for the user of the session.`,
    { issues },
    { cause },
  );
}
