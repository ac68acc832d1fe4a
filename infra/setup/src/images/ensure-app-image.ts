import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EnsureImageDeps } from './ensure-session-image.ts';
import { buildImage, hasImage } from './image-store.ts';
import { packDirectory } from './pack-context.ts';
import { type Closure, findProductionClosure } from './production-closure.ts';
import { recipeHash } from './recipe-hash.ts';

const notShipped = ['*.test.ts', '*.bench.ts'];

/** Returns the name of the worker's image, built from this checkout if missing. The base image must have Node. */
export function ensureWorkerImage(deps: EnsureImageDeps, baseImage: string): Promise<string> {
  return ensureAppImage('worker', deps, baseImage);
}

/** Returns the name of the API's image, built from this checkout if missing. The base image must have Node. */
export function ensureApiImage(deps: EnsureImageDeps, baseImage: string): Promise<string> {
  return ensureAppImage('api', deps, baseImage);
}

async function ensureAppImage(app: 'worker' | 'api', deps: EnsureImageDeps, baseImage: string): Promise<string> {
  const { endpoint, root, report } = deps;
  const dockerfile = `infra/images/${app}/Dockerfile`;
  const closure = await findProductionClosure(root, `apps/${app}`);
  const image = `shellfleet/${app}:${await hashApp(root, { closure, dockerfile, baseImage })}`;
  if (await hasImage(endpoint, image)) return image;
  report(`Building the ${app} image`);
  const context = packApp(root, closure, dockerfile);
  await buildImage(endpoint, image, context, { dockerfile, buildArgs: { BASE_IMAGE: baseImage } });
  return image;
}

function packApp(root: string, { packages, workspaces, links }: Closure, dockerfile: string) {
  // A package inside another packed directory is packed with that directory. A second copy would become a link in the
  // tar file.
  const directories = [...workspaces, ...packages];
  const outermost = packages.filter((path) => !directories.some((directory) => path.startsWith(`${directory}/`)));
  const builds = workspaces.map((path) => `${path}/dist`);
  const paths = ['package.json', dockerfile, ...workspaces, ...links, ...outermost];
  // The user of the image owns none of the files, so all must be readable, whatever the umask of the checkout was.
  const modes = process.platform === 'darwin' ? [] : ['--mode=a+rX,go-w'];
  return packDirectory(root, paths, [...notShipped, ...builds], modes);
}

interface Recipe {
  closure: Closure;
  dockerfile: string;
  baseImage: string;
}

async function hashApp(root: string, { closure, dockerfile, baseImage }: Recipe): Promise<string> {
  const parts: (string | Uint8Array)[] = [baseImage];
  const files = ['package-lock.json', dockerfile];
  for (const workspace of closure.workspaces) files.push(...(await listSources(root, workspace)));
  for (const file of files) parts.push(file, await readFile(join(root, file)));
  return recipeHash(parts);
}

async function listSources(root: string, workspace: string): Promise<string[]> {
  const files: string[] = [];
  for (const entry of await readdir(join(root, workspace), { withFileTypes: true })) {
    const path = `${workspace}/${entry.name}`;
    if (['node_modules', 'dist'].includes(entry.name) || entry.name.endsWith('.test.ts')) continue;
    if (entry.isDirectory()) files.push(...(await listSources(root, path)));
    else if (entry.isFile()) files.push(path);
  }
  return files.sort();
}
