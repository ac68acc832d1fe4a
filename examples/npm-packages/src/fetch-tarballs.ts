import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Package } from './packages.ts';

/**
 * Fetches every package and its dependencies with npm, and returns the path
 * of each tarball by name. Throws when the integrity of a package differs.
 */
export async function fetchTarballs(packages: Package[], directory: string): Promise<Map<string, string>> {
  const wanted = new Map(packages.flatMap((item) => [item, ...item.dependencies]).map((item) => [item.name, item]));
  const packed = await npmPack([...wanted.values()], directory);
  const tarballs = new Map<string, string>();
  for (const { name, integrity } of wanted.values()) {
    const path = join(directory, packed.get(name) ?? '');
    const found = `sha512-${createHash('sha512')
      .update(await readFile(path))
      .digest('base64')}`;
    if (found !== integrity)
      throw new Error(`The tarball of ${name} does not have the pinned integrity. It has ${found}.`);
    tarballs.set(name, path);
  }
  return tarballs;
}

/** Returns the file name of each tarball in the directory, by package name. */
async function npmPack(packages: Package[], directory: string): Promise<Map<string, string>> {
  const specs = packages.map(({ name, version }) => `${name}@${version}`);
  // With its defaults npm would retry for minutes while the registry is out of reach.
  const retries = ['--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--fetch-timeout=30000'];
  const output = await runNpm(['pack', ...specs, '--json', '--loglevel=error', ...retries], directory);
  const listed = JSON.parse(output) as { name: string; filename: string }[];
  return new Map(listed.map(({ name, filename }) => [name, filename]));
}

function runNpm(args: string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('npm', args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const lines = stderr.split('\n').filter((line) => /^npm (?:error|ERR!)/.test(line));
      const why = lines.length > 0 ? lines.slice(0, 4).join('\n') : error.message;
      reject(new Error(`The packages could not be fetched: this example needs the npm registry.\n${why}`));
    });
  });
}
