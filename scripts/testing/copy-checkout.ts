import { cp, mkdir, mkdtemp, readdir, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { root } from '../steps.ts';

const leftOut = ['node_modules', '.git', 'dist', '.cache', '.nx', 'bench-results', 'build'];

/** Copies this checkout for a test that changes files. The caller removes the copy. */
export async function copyCheckout(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'shellfleet-copy-'));
  await cp(root, copy, { recursive: true, filter: (path) => path === root || !leftOut.includes(basename(path)) });
  await linkModules(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

// Links of workspaces are relative, so they point into the copy. Everything else is shared.
async function linkModules(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const name of await readdir(from)) {
    if (name === '@shellfleet') await cp(join(from, name), join(to, name), { recursive: true, verbatimSymlinks: true });
    else if (name !== '.cache') await symlink(join(from, name), join(to, name));
  }
}

/** Returns the environment of a tool of this checkout, with the pinned Node and the tools first on PATH. */
export function toolEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`, NO_COLOR: '1' };
}
