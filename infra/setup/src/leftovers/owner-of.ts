import { spawn } from 'node:child_process';
import { access, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Returns a container's owner, if it has one, as the end of a sentence. Finds the owner by the host's state directory:
 * `mounted` is `<state directory>/hosts/<host>/s/<sandbox>`. Containers of versions without identities lack a fleet id.
 */
export async function ownerOf(fleetId: string | undefined, mounted: string | undefined): Promise<string | undefined> {
  if (mounted === undefined) return 'nothing on it names the state directory of its host';
  const host = dirname(dirname(mounted));
  const code = await access(host).then(
    () => 'there',
    (error: NodeJS.ErrnoException) => error.code,
  );
  if (code === 'ENOENT') return undefined;
  const kept = await readKept(join(host, 'fleets'));
  if (kept === 'forbidden') return `this user may not look into ${host}`;
  if (fleetId !== undefined) return kept?.includes(fleetId) ? `${host} is a host of its fleet` : undefined;
  if (kept !== undefined) return undefined;
  return (await isHostLocked(host)) ? `a worker of an older version has ${host}` : undefined;
}

/** Reads the fleets of a host. Returns undefined for a host of a version without identities. */
async function readKept(directory: string): Promise<string[] | 'forbidden' | undefined> {
  try {
    const names = (await readdir(directory)).filter((name) => name.endsWith('.id'));
    return await Promise.all(names.map(async (name) => (await readFile(join(directory, name), 'utf8')).trim()));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : 'forbidden';
  }
}

/** Returns true if a worker has locked the directory of a host, or if flock(1) is missing (LEFTOVER-2). */
export function isHostLocked(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn('flock', ['--nonblock', '--shared', join(host, 'lock'), 'true'], { stdio: 'ignore' });
    child.once('error', () => resolve(true));
    child.once('exit', (code) => resolve(code !== 0));
  });
}
