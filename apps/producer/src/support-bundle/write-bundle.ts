import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BundleSources, collect } from './collect.ts';
import { findSecrets } from './find-secrets.ts';
import { createTextRedactor } from './redact-text.ts';

/** Writes a bundle into a new directory that only this user can read. Returns the names of its files. */
export async function writeBundle(directory: string, sources: BundleSources): Promise<string[]> {
  await mkdir(directory, { mode: 0o700 });
  const redact = createTextRedactor(await findSecrets(sources.env, sources.redisUrl));
  const files = await collect(sources);
  for (const [name, text] of files) {
    await writeFile(join(directory, name), redact(text), { mode: 0o600, flag: 'wx' });
  }
  return [...files.keys()];
}
