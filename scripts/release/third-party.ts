import { readdir, readFile, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { OutputChunk } from 'rolldown';
import type { Manifest } from './published-manifest.ts';

/** Returns the folders of the packages with code in these chunks. */
export async function packagesOf(chunks: readonly OutputChunk[]): Promise<string[]> {
  const folders = new Set<string>();
  for (const id of chunks.flatMap(({ modules }) => Object.keys(modules))) {
    if (id.startsWith('/')) folders.add(await packageFolder(dirname(id)));
  }
  return [...folders].sort();
}

/** Finds the nearest package.json that names a package. Others only name the kind of their modules. */
async function packageFolder(folder: string): Promise<string> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '{}');
  return 'name' in JSON.parse(text) ? realpath(folder) : packageFolder(dirname(folder));
}

/**
 * Returns THIRD-PARTY-NOTICES.txt with the licences of the packages from npm, which are part of `whole`. Throws for a
 * package without one.
 */
export async function collectLicences(whole: string, folders: readonly string[]): Promise<string> {
  const notices = folders.filter((folder) => folder.includes('/node_modules/')).map(toNotice);
  return `${whole} contains these packages.\n\n${(await Promise.all(notices)).join('\n')}`;
}

async function toNotice(folder: string): Promise<string> {
  const { name, version, license } = await readManifest(folder);
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort();
  if (files.length === 0 || typeof license !== 'string') throw new Error(`${name} in the bundle has no licence.`);
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  return `${'='.repeat(80)}\n${name} ${version} (${license})\n\n${texts.join('\n').trim()}\n`;
}

export async function readManifest(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
}
