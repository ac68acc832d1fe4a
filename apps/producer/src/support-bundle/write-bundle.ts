import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BundleSources, collect } from './collect.ts';
import { findSecrets } from './find-secrets.ts';
import { createTextRedactor } from './redact-text.ts';
import { isArchive, writeArchive } from './write-archive.ts';

/** Writes a bundle into a new directory or archive that only this user can read. Returns the names of its files. */
export async function writeBundle(path: string, sources: BundleSources): Promise<string[]> {
  let names: string[] = [];
  const redacted = async () => {
    const redact = createTextRedactor(await findSecrets(sources.env, sources.redisUrl));
    const files = await collect(sources);
    names = [...files.keys()];
    return new Map([...files].map(([name, text]) => [name, redact(text)]));
  };
  if (isArchive(path)) await writeArchive(path, redacted);
  else await writeDirectory(path, redacted);
  return names;
}

async function writeDirectory(path: string, collectFiles: () => Promise<ReadonlyMap<string, string>>): Promise<void> {
  await mkdir(path, { mode: 0o700 });
  for (const [name, text] of await collectFiles()) await writeFile(join(path, name), text, { mode: 0o600, flag: 'wx' });
}
