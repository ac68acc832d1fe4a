import { fileURLToPath } from 'node:url';
import type { Task } from '@shellfleet/client';
import type { Package } from './packages.ts';

/**
 * Returns a task that uploads a package and its check, unpacks the
 * package, and runs the check, which is a Node script with assertions.
 */
export function toTask(item: Package, tarballs: Map<string, string>, broken: boolean): Task {
  const all = [item, ...item.dependencies];
  const uploads = all.map(({ name }) => [`/workspace/${name}.tgz`, tarballs.get(name) ?? '']);
  const check = fileURLToPath(new URL(`../checks/${item.name}.mjs`, import.meta.url));
  const files: Record<string, string> = { ...Object.fromEntries(uploads), '/workspace/check.mjs': check };
  const script = [...all.map(({ name }) => unpack(name)), 'node check.mjs'];
  if (broken) script.splice(-1, 0, emptySources(item.name));
  return { id: item.name, files, script, timeoutMs: 30_000 };
}

function unpack(name: string): string {
  return `mkdir -p node_modules/${name} && tar -xzf ${name}.tgz -C node_modules/${name} --strip-components=1`;
}

function emptySources(name: string): string {
  return `find node_modules/${name} -type f \\( -name '*.js' -o -name '*.cjs' -o -name '*.mjs' \\) -exec truncate -s 0 {} +`;
}
