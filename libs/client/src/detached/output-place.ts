import { lstat } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { ShellfleetError } from '@shellfleet/protocol';

// The outputs of a detached batch are written by whoever attaches to it, so their paths may not leave the directory of
// that process, nor name what other programs there obey, such as .git/hooks or .bashrc.

/** Tells whether a local path names something below the directory in which it is used, without any hidden part. */
export function isVisibleBelow(path: string): boolean {
  const below = relative(resolve('/a'), resolve('/a', path));
  if (isAbsolute(path) || isAbsolute(below)) return false;
  return below.split(sep).every((part) => part !== '' && !part.startsWith('.'));
}

/** Rejects with FILE_DENIED if a path below a directory, or a part of the way to it, is a symbolic link. */
export async function refuseLinks(directory: string, path: string): Promise<void> {
  let way = directory;
  for (const name of relative(directory, path).split(sep)) {
    way = join(way, name);
    const found = await lstat(way).catch(() => undefined);
    if (found === undefined) return;
    if (!found.isSymbolicLink()) continue;
    const message = `${way} is a symbolic link, which is not followed, so ${path} was not written.`;
    throw new ShellfleetError('FILE_DENIED', message, { path });
  }
}
