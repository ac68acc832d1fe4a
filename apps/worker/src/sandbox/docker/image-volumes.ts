import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { isSystemDirectory, ShellfleetError } from '@shellfleet/protocol';
import type { Docker } from '@shellfleet/vendor/dockerode';
import { extract } from 'tar-stream';
import { isNotFound } from './docker-errors.ts';
import type { Engine } from './engine.ts';

// Volumes that an image declares. The engine would create each on its own disk without a limit. A session gets a
// directory in memory instead.
//
// VOLUME-1. No container of a session has a volume of the engine.
// VOLUME-2. A directory in memory hides no file of the image. An image that has files in such a place is refused.

/**
 * Returns where a session gets a tmpfs or its workspace (mounted at `workspace`) in place of the image's volumes.
 * Throws SANDBOX_UNAVAILABLE where no directory can be mounted.
 */
export function planVolumes(image: string, volumes: readonly string[], workspace: string | undefined): string[] {
  const directories = volumes.map((volume) => posix.normalize(volume).replace(/(?<=.)\/+$/, ''));
  const isTaken = (directory: string) => workspace !== undefined && directory.startsWith(`${workspace}/`);
  const refused = directories.find(
    (directory) => !directory.startsWith('/') || isSystemDirectory(directory) || isTaken(directory),
  );
  if (refused !== undefined)
    throw refusal(image, `${refused}, which is a directory of the system or of the keeper, or in the workspace`);
  return [...new Set(directories)].filter((directory) => directory !== workspace).sort();
}

/** Checks VOLUME-1 and VOLUME-2 before the container starts. `isCompared` is true where WORKSPACE-2 applies. */
export async function checkVolumes(
  engine: Engine,
  containerId: string,
  image: string,
  { directories, isCompared }: { directories: readonly string[]; isCompared: boolean },
): Promise<void> {
  if (directories.length === 0 && !isCompared) return;
  const { Mounts: mounts } = await engine.call((docker, abortSignal) =>
    docker.getContainer(containerId).inspect({ abortSignal }),
  );
  const volume = mounts.find(({ Type: type }) => type === 'volume');
  if (volume !== undefined) throw refusal(image, `${volume.Destination}, in place of which the engine takes no other`);
  for (const directory of directories) {
    if (await hasFiles(engine, containerId, directory))
      throw refusal(image, `${directory} and has files there, which a session would not see`);
  }
}

/** Tells whether a directory has files. Reads its archive only up to the first file. */
async function hasFiles(engine: Engine, containerId: string, directory: string): Promise<boolean> {
  const read = (docker: Docker, abortSignal: AbortSignal) =>
    docker.getContainer(containerId).getArchive({ path: directory, abortSignal });
  const archive = await engine.call(read).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  if (archive === undefined) return false;
  let entries = 0;
  try {
    for await (const entry of archive.pipe(extract())) {
      entry.resume();
      entries += 1;
      // The first entry is the directory.
      if (entries > 1) return true;
    }
    return false;
  } finally {
    // The engine holds the container until the archive is read or destroyed.
    (archive as Readable).destroy();
  }
}

function refusal(image: string, what: string): ShellfleetError {
  const message = `declares the volume ${what}`;
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The image ${image} ${message}. A session has an empty directory in memory in place of each volume. Choose another image, or make one without the volume (docker export, docker import).`,
    { issues: [{ path: 'image', message }] },
  );
}
