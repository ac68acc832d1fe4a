import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

const ENDING = /\.(?:tgz|tar\.gz)$/;

/** Tells whether a path is to be an archive, by its ending. */
export const isArchive = (path: string): boolean => ENDING.test(path);

/**
 * Writes a new archive that only this user can read. Its files are in one directory, which has the name of the archive.
 * Throws EEXIST, before it collects the files, when something is at the path.
 */
export async function writeArchive(path: string, collect: () => Promise<ReadonlyMap<string, string>>): Promise<void> {
  const file = createWriteStream(path, { mode: 0o600, flags: 'wx' });
  await new Promise((resolve, reject) => file.once('open', resolve).once('error', reject));
  try {
    const files = await collect();
    const { pack } = await import('tar-stream');
    const archive = pack();
    const directory = basename(path).replace(ENDING, '');
    for (const [name, text] of files)
      archive.entry({ name: `${directory}/${name}`, mode: 0o600, mtime: new Date() }, text);
    archive.finalize();
    await pipeline(archive, createGzip(), file);
  } catch (error) {
    file.destroy();
    await rm(path, { force: true });
    throw error;
  }
}
