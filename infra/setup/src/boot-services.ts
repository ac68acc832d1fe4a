import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, runProgram } from './run-program.ts';

/**
 * Does the work, then disables the services that the work enabled at boot: Debian's redis-server, for example, would
 * listen without a password. Set-up starts and stops them with the fleet. `root` is the root of the file system.
 */
export async function withoutEnablingServices(work: () => Promise<void>, root = '/'): Promise<void> {
  const before = new Set(await listEnabled(root));
  try {
    await work();
  } finally {
    const added = (await listEnabled(root)).filter((name) => !before.has(name));
    if (added.length > 0 && (await findProgram('systemctl')))
      await runProgram('systemctl', ['disable', '--quiet', ...added], { timeoutMs: 60_000 });
  }
}

/** Lists the units that start at boot or with a socket, from the links that `systemctl enable` makes. */
async function listEnabled(root: string): Promise<string[]> {
  const system = join(root, 'etc/systemd/system');
  const directories = (await list(system)).filter((name) => /\.(wants|requires)$/.test(name));
  const units = await Promise.all(directories.map((directory) => list(join(system, directory))));
  return [...new Set(units.flat())].sort();
}

const list = (directory: string) => readdir(directory).catch(() => [] as string[]);
