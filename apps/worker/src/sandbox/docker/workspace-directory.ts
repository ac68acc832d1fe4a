import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { ShellfleetError } from '@shellfleet/protocol';
import type { SandboxTransport } from '../sandbox.ts';

// The engine opens the source of a mount when the container starts, some time after this worker has checked the path.
// In between, a session that may write to a parent directory can put a link there. The engine mounts paths only, and
// the runtime cannot mount a descriptor of another mount namespace. So the worker opens the directory without following
// links, and the keeper refuses to start a shell if another directory is mounted.
//
// WORKSPACE-1. No program of the session runs until the mounted directory has been compared with the opened one.
// WORKSPACE-2. Where the keeper compares, an image with volumes is refused: the runtime makes mount points before that.
// WORKSPACE-3. The descriptor stays open until the sandbox has ended: inode numbers of removed directories are reused.

export interface WorkspaceDirectory {
  /** `device:inode` for the keeper. Undefined when no session can have changed the path. */
  identity: string | undefined;
  close(): Promise<void>;
}

/** O_PATH of Linux, which Node does not define. Such a descriptor needs no permission to read the directory. */
const O_PATH = 0o10000000;
const DIRECTORY_ITSELF = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Opens the host directory of the workspace, if there is one. The policy accepted `path`, which had no links then.
 * `allowed` are the directories that the operator lists.
 */
export async function openWorkspaceDirectory(
  path: string | undefined,
  allowed: readonly string[],
  transport: SandboxTransport,
): Promise<WorkspaceDirectory> {
  if (path === undefined || isOutOfReach(path, allowed)) return { identity: undefined, close: async () => {} };
  if (process.platform !== 'linux') throw notComparable(path, 'its engine runs on another kernel');
  // The engine copies files before the start. Links of the image could lead them into the mounted directory.
  if (transport === 'attach') throw notComparable(path, 'its sandboxes are reached over attach');
  const directory = await openWithoutLinks(path);
  try {
    const { dev, ino } = await directory.stat({ bigint: true });
    return { identity: `${dev}:${ino}`, close: () => directory.close() };
  } catch (error) {
    await directory.close();
    throw error;
  }
}

/** Tells whether no session can write above `path`: sessions mount directories below listed ones only. */
function isOutOfReach(path: string, allowed: readonly string[]): boolean {
  const listed = allowed.map((directory) => directory.replace(/\/+$/, ''));
  return listed.includes(path) && !listed.some((directory) => path.startsWith(`${directory}/`));
}

async function openWithoutLinks(path: string): Promise<FileHandle> {
  let at = await open('/', DIRECTORY_ITSELF);
  for (const name of path.split('/').filter(Boolean)) {
    const next = await open(`/proc/self/fd/${at.fd}/${name}`, DIRECTORY_ITSELF).catch(
      (cause: unknown) => cause as Error,
    );
    await at.close();
    if (next instanceof Error) throw changed(path, next);
    at = next;
  }
  return at;
}

function changed(path: string, cause: Error): ShellfleetError {
  const issues = [{ path: 'workspace', message: 'changed while it was opened' }];
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The directory ${path} changed while it was opened.`,
    { issues },
    { cause },
  );
}

export function hasVolumes(image: string): ShellfleetError {
  const issues = [{ path: 'workspace', message: 'is below a listed directory, and the image declares volumes' }];
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The image ${image} declares volumes, whose directories would be made before the workspace is checked. Choose another image, or have the operator list this very directory in SHELLFLEET_WORKSPACES.`,
    { issues },
  );
}

function notComparable(path: string, why: string): ShellfleetError {
  const issues = [
    { path: 'workspace', message: `is below a listed directory, on a host that cannot check it: ${why}` },
  ];
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `This host cannot check that ${path} itself is mounted, because ${why}. Ask the operator to list this very directory in SHELLFLEET_WORKSPACES.`,
    { issues },
  );
}
