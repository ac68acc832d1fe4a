import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../steps.ts';

const left = new Set(['node_modules', 'dist', 'build', '.git', '.cache', '.nx', 'bench-results']);

/** Reads every file of this checkout whose path is accepted, except built and installed files. */
export async function repositoryFiles(accepts: (path: string) => boolean): Promise<{ path: string; text: string }[]> {
  const paths: string[] = [];
  for await (const entry of glob('**/*', { cwd: root, withFileTypes: true, exclude: ({ name }) => left.has(name) })) {
    const path = join(entry.parentPath, entry.name).slice(root.length + 1);
    if (entry.isFile() && accepts(path)) paths.push(path);
  }
  return Promise.all(paths.toSorted().map(async (path) => ({ path, text: await readFile(join(root, path), 'utf8') })));
}
