import { readdir, readFile, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { OutputChunk } from 'rolldown';
import type { Manifest } from './published-manifest.ts';

/** Returns the directories of the packages with code in these chunks. */
export async function packagesOf(chunks: readonly OutputChunk[]): Promise<string[]> {
  const directories = new Set<string>();
  for (const id of chunks.flatMap(({ modules }) => Object.keys(modules))) {
    if (id.startsWith('/')) directories.add(await packageDirectory(dirname(id)));
  }
  return [...directories].sort();
}

/** Finds the nearest package.json that names a package. A package.json without a name only sets the kind of modules. */
async function packageDirectory(directory: string): Promise<string> {
  const text = await readFile(join(directory, 'package.json'), 'utf8').catch(() => '{}');
  return 'name' in JSON.parse(text) ? realpath(directory) : packageDirectory(dirname(directory));
}

/**
 * Returns THIRD-PARTY-NOTICES.txt with the licences of the packages from npm, which are part of `whole`. Throws for a
 * package without a licence.
 */
export async function collectLicences(whole: string, directories: readonly string[]): Promise<string> {
  const notices = directories.filter((directory) => directory.includes('/node_modules/')).map(toNotice);
  return `${whole} contains these packages.\n\n${(await Promise.all(notices)).join('\n')}`;
}

async function toNotice(directory: string): Promise<string> {
  const { name, version, license } = await readManifest(directory);
  const files = (await readdir(directory)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort();
  if (files.length === 0 || typeof license !== 'string') throw new Error(`${name} in the bundle has no licence.`);
  const texts = await Promise.all(files.map((file) => readFile(join(directory, file), 'utf8')));
  return `${'='.repeat(80)}\n${name} ${version} (${license})\n\n${texts.join('\n').trim()}\n`;
}

export async function readManifest(directory: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as Manifest;
}
