import { execFile } from 'node:child_process';
import { access, cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import type { Mutant } from './draw.ts';

const run = promisify(execFile);

/** A copy of the checkout in which files are changed, so that a run that is killed leaves the checkout as it was. */
export interface CheckoutCopy {
  directory: string;
  /** Runs `work` while the mutant is in place, and puts the file back. */
  withMutant<T>(mutant: Mutant, work: () => Promise<T>): Promise<T>;
}

/**
 * Copies the files that git knows or would add. The copy is in the checkout, so that packages are found in the
 * directory above it; the workspaces' own packages are linked to the copy, and packages installed in a workspace
 * are linked to the checkout. `name` keeps the copies of runs at the same time apart.
 */
export async function copyCheckout(root: string, name: string): Promise<CheckoutCopy> {
  const directory = join(root, `.cache/mutants/copy-${name}`);
  await rm(directory, { recursive: true, force: true });
  const listed = await run('git', ['ls-files', '-z', '-co', '--exclude-standard', '--deduplicate'], { cwd: root });
  const paths = listed.stdout.split('\0').filter((path) => path !== '');
  for (const path of paths) await copyFile(root, directory, path);
  await linkWorkspaces(directory, paths);
  await linkInstalled(root, directory, paths);
  return {
    directory,
    async withMutant(mutant, work) {
      const path = join(directory, mutant.file);
      const source = await readFile(path, 'utf8');
      await writeFile(path, source.slice(0, mutant.from) + mutant.text + source.slice(mutant.to));
      try {
        return await work();
      } finally {
        await writeFile(path, source);
      }
    },
  };
}

async function copyFile(root: string, directory: string, path: string): Promise<void> {
  await mkdir(dirname(join(directory, path)), { recursive: true });
  // Git still lists a file whose deletion is not committed.
  await cp(join(root, path), join(directory, path), { verbatimSymlinks: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    },
  );
}

async function linkWorkspaces(directory: string, paths: readonly string[]): Promise<void> {
  for (const path of paths.filter((one) => one.endsWith('/package.json'))) {
    const { name } = JSON.parse(await readFile(join(directory, path), 'utf8')) as { name?: string };
    if (!name?.startsWith('@shellfleet/')) continue;
    const link = join(directory, 'node_modules', name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(relative(dirname(link), join(directory, dirname(path))), link).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      },
    );
  }
}

/** Links the node_modules of workspaces, which exist where a workspace needs another version than the root has. */
async function linkInstalled(root: string, directory: string, paths: readonly string[]): Promise<void> {
  for (const path of paths.filter((one) => one.endsWith('/package.json'))) {
    const installed = join(dirname(path), 'node_modules');
    const isThere = await access(join(root, installed)).then(
      () => true,
      () => false,
    );
    if (isThere) await symlink(join(root, installed), join(directory, installed));
  }
}
