import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { ShellfleetError } from '@shellfleet/protocol';
import { toLocalError } from '../files/local-error.ts';
import { type LocalFile, openLocalFile } from '../files/local-file.ts';
import { LocalTree } from '../files/local-tree.ts';
import { DIRECTORY_NAME, FILE_NAME } from './pack-path.ts';

/**
 * Unpacks what `packPath` has packed to a path. `replace`: what is there is removed first. `merge`: a directory is
 * merged into the one that is there. Nothing is written outside of the path. Resolves with the number of unpacked
 * bytes. Rejects with FILE_TOO_LARGE when they are more than `mostBytes`, with FILE_… or PATH_INVALID.
 */
export async function unpackTo(
  packed: AsyncIterable<Uint8Array> | Uint8Array,
  path: string,
  how: 'replace' | 'merge',
  mostBytes: number,
): Promise<number> {
  const bytes = packed instanceof Uint8Array ? [packed] : packed;
  try {
    await mkdir(dirname(path), { recursive: true });
    if (how === 'merge') return await unpack(bytes, path, mostBytes);
    const part = `${path}.shellfleet-part`;
    for (const stale of [path, part]) await rm(stale, { recursive: true, force: true });
    const size = await unpack(bytes, part, mostBytes).catch(async (error: unknown) => {
      await rm(part, { recursive: true, force: true });
      throw error;
    });
    await rename(part, path);
    return size;
  } catch (error) {
    throw toLocalError(path, error);
  }
}

async function unpack(
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  path: string,
  mostBytes: number,
): Promise<number> {
  const { extract } = await import('tar-stream');
  const tree = new LocalTree(path, path);
  let root: 'none' | 'file' | 'directory' = 'none';
  const archive = extract();
  const writing = async () => {
    for await (const entry of archive) {
      const { name, type, mode = 0o644, linkname } = entry.header;
      if (root === 'none' && name === FILE_NAME && type === 'file') {
        root = 'file';
        await writeFile(await openLocalFile(path), entry, mode);
      } else if (root === 'none' && name === DIRECTORY_NAME && type === 'directory') {
        root = 'directory';
        await tree.begin(mode);
      } else if (root === 'directory' && name.startsWith(DIRECTORY_NAME)) {
        const below = name.slice(DIRECTORY_NAME.length).replace(/\/$/, '');
        await tree.check(below);
        if (type === 'directory') await tree.makeDirectory(below, mode);
        else if (type === 'symlink') await tree.addLink(below, linkname ?? '');
        else if (type === 'file') await writeFile(await tree.openFile(below), entry, mode);
        else throw invalid(path);
      } else throw invalid(path);
      entry.resume();
    }
    if (root === 'none') throw invalid(path);
    await tree.finish();
  };
  let left = mostBytes;
  const limit = async function* (pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      left -= piece.byteLength;
      if (left < 0) throw tooLarge(path, mostBytes);
      yield piece;
    }
  };
  // The writing fails with the error of the reading, or ends it.
  const ends = await Promise.allSettled([writing(), pipeline(Readable.from(bytes), createGunzip(), limit, archive)]);
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return mostBytes - left;
}

async function writeFile(file: LocalFile, entry: AsyncIterable<unknown>, mode: number): Promise<void> {
  try {
    for await (const piece of entry) await file.write(piece as Uint8Array);
    await file.finish(mode);
  } catch (error) {
    await file.discard();
    throw error;
  }
}

function invalid(path: string): ShellfleetError {
  return new ShellfleetError('FILE_DENIED', `What was stored for ${path} is no packed file or directory.`, { path });
}

function tooLarge(path: string, limit: number): ShellfleetError {
  const message = `What was stored for ${path} has over ${limit} bytes when it is unpacked.`;
  return new ShellfleetError('FILE_TOO_LARGE', message, { path, limit });
}
