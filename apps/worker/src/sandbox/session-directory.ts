import { spawnSync } from 'node:child_process';
import { chmod, copyFile, link, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ShellfleetError } from '@shellfleet/protocol';

// One directory of the host for each sandbox, mounted into it read-only, with the keeper's binary and socket. The
// parent (0700) keeps other users out. The sandbox sees only the mounted directory (0711). Its socket accepts every
// user, because the session's user is not the worker's.

const KEEPER_FILE = 'keeper';
const SOCKET_FILE = 'socket';
/** The proxy's socket, if the network of the session is limited. */
export const EGRESS_FILE = 'egress';

/** Size of `sun_path` (108 bytes) without its final NUL. */
const MOST_SOCKET_PATH_BYTES = 107;

export interface SessionDirectories {
  create(name: string): Promise<SessionDirectory>;
  at(name: string): SessionDirectory;
  /** Empties all files in the directory of a stopped sandbox. The files stay, because the sandbox mounts them. */
  empty(name: string): Promise<void>;
  /** Returns the keeper's binary, for containers into which it is copied. */
  keeper(): Promise<Buffer>;
  sweep(names: ReadonlySet<string>): Promise<void>;
}

interface SessionDirectory {
  path: string;
  socketPath: string;
  egressPath: string;
  remove(): Promise<void>;
}

/** Checks the path length and that files can be executed. `files` are other files for the sandboxes, by name. */
export async function openSessionDirectories(
  parent: string,
  keeperPath: string,
  files: Record<string, string> = {},
): Promise<SessionDirectories> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await chmod(parent, 0o700);
  checkSocketPath(join(parent, 'x'.repeat(25), SOCKET_FILE));
  await checkExecutable(parent);
  const keeper = join(parent, '.keeper');
  await copyKeeper(keeperPath, keeper);
  const at = (name: string): SessionDirectory => {
    const path = join(parent, name);
    const remove = () => rm(path, { recursive: true, force: true });
    return { path, socketPath: join(path, SOCKET_FILE), egressPath: join(path, EGRESS_FILE), remove };
  };
  return {
    at,
    keeper: () => readFile(keeper),
    async create(name) {
      const directory = at(name);
      try {
        await mkdir(directory.path, { mode: 0o711 });
        await chmod(directory.path, 0o711);
        await link(keeper, join(directory.path, KEEPER_FILE));
        for (const [file, text] of Object.entries(files))
          await writeFile(join(directory.path, file), text, { mode: 0o444 });
      } catch (error) {
        await directory.remove();
        throw isFull(error) ? diskFull(parent, error) : error;
      }
      return directory;
    },
    async empty(name) {
      const { path } = at(name);
      for (const file of await readdir(path).catch(() => [])) {
        await rm(join(path, file), { recursive: true, force: true });
        if (file !== KEEPER_FILE && file !== SOCKET_FILE && file !== EGRESS_FILE) await writeFile(join(path, file), '');
      }
    },
    async sweep(names) {
      const found = await readdir(parent);
      const stale = found.filter((name) => !name.startsWith('.') && !names.has(name));
      await Promise.all(stale.map((name) => at(name).remove()));
    },
  };
}

/** Copies the keeper unless it is there: a worker must also start on a full disk. */
async function copyKeeper(from: string, to: string): Promise<void> {
  const [wanted, known] = await Promise.all([readFile(from), readFile(to).catch(() => undefined)]);
  if (known?.equals(wanted)) return;
  const draft = `${to}.new`;
  await rm(draft, { force: true });
  await copyFile(from, draft);
  await chmod(draft, 0o555);
  await rename(draft, to);
}

function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function diskFull(parent: string, cause: unknown): ShellfleetError {
  return new ShellfleetError(
    'SESSION_START_FAILED',
    `The disk of ${parent} is full, so no sandbox can be made on this host. Free some space there.`,
    { path: parent },
    { cause },
  );
}

function checkSocketPath(path: string): void {
  const bytes = Buffer.byteLength(path);
  if (bytes <= MOST_SOCKET_PATH_BYTES) return;
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The state directory's path is too long: a unix socket in it would have ${bytes} bytes, and the kernel takes ${MOST_SOCKET_PATH_BYTES}. Set SHELLFLEET_STATE_DIR to a shorter path.`,
    { path, bytes, limit: MOST_SOCKET_PATH_BYTES },
  );
}

async function checkExecutable(parent: string): Promise<void> {
  const probe = join(parent, '.exec-probe');
  try {
    await writeFile(probe, '#!/bin/sh\nexit 0\n', { mode: 0o700 });
  } catch (error) {
    await rm(probe, { force: true });
    // A full disk must not keep the worker from its sandboxes. New sandboxes are refused while the disk is full.
    if (isFull(error)) return;
    throw error;
  }
  const { error } = spawnSync(probe, { timeout: 5_000 });
  await rm(probe, { force: true });
  if (!error) return;
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `Nothing can be executed from ${parent} (is its file system mounted noexec?), so no keeper could start there. Set SHELLFLEET_STATE_DIR to another directory.`,
    { path: parent },
    { cause: error },
  );
}
