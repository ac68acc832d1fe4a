import { readFile, realpath } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

type Manifest = {
  name?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
};

/** Run-time packages, workspaces and links to workspaces of a workspace, as paths relative to the root. */
export type Closure = { packages: string[]; workspaces: string[]; links: string[] };

/** Follows the production dependencies of one workspace, with the resolution rules of Node. */
export async function findProductionClosure(root: string, workspace: string): Promise<Closure> {
  const packages = new Set<string>();
  const workspaces = new Set<string>();
  const links = new Set<string>();
  const queue = [join(root, workspace)];
  for (let directory = queue.pop(); directory !== undefined; directory = queue.pop()) {
    const isWorkspace = !relative(root, directory).includes('node_modules');
    const found = isWorkspace ? workspaces : packages;
    const path = relative(root, directory);
    if (found.has(path)) continue;
    found.add(path);
    for (const [name, optional] of await readDependencies(directory)) {
      const link = await resolvePackage(root, directory, name);
      if (link === undefined) {
        if (optional) continue;
        throw new Error(`${path} needs ${name}, which is not installed. Run npm ci.`);
      }
      const target = await realpath(link);
      if (target !== link) links.add(relative(root, link));
      queue.push(target);
    }
  }
  return { packages: [...packages].sort(), workspaces: [...workspaces].sort(), links: [...links].sort() };
}

async function readDependencies(directory: string): Promise<Map<string, boolean>> {
  const manifest = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as Manifest;
  const names = new Map<string, boolean>();
  for (const name of Object.keys(manifest.dependencies ?? {})) names.set(name, false);
  // In some packages, npm lists an optional dependency among the dependencies too.
  for (const name of Object.keys(manifest.optionalDependencies ?? {})) names.set(name, true);
  return names;
}

async function resolvePackage(root: string, from: string, name: string): Promise<string | undefined> {
  for (let directory = from; ; directory = dirname(directory)) {
    const candidate = join(directory, 'node_modules', name);
    const exists = await readFile(join(candidate, 'package.json')).then(
      () => true,
      () => false,
    );
    if (exists) return candidate;
    if (directory === root || directory === dirname(directory)) return undefined;
  }
}
