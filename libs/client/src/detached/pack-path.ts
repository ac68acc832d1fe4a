import { createReadStream, type Stats } from 'node:fs';
import { readlink, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { ShellfleetError } from '@shellfleet/protocol';
import type { Header, Pack } from 'tar-stream';
import { localDenied, toLocalError } from '../files/local-error.ts';
import { PERMISSIONS } from '../files/local-file.ts';
import { walkLocal } from '../files/upload-directory.ts';

// A packed path is a gzipped tar. That of a file has one entry, FILE_NAME. That of a directory begins with
// DIRECTORY_NAME, below which everything else is. Equal contents are packed to equal bytes.

export const FILE_NAME = 'file';
export const DIRECTORY_NAME = 'directory/';

/**
 * Packs a file or directory. Rejects with FILE_TOO_LARGE when it becomes larger than `mostBytes`, and with FILE_… or
 * PATH_INVALID when it cannot be read.
 */
export async function packPath(path: string, mostBytes: number): Promise<Buffer> {
  const { pack } = await import('tar-stream');
  const archive = pack();
  const pieces: Buffer[] = [];
  let bytes = 0;
  const collect = async (packed: AsyncIterable<Buffer>) => {
    for await (const piece of packed) {
      bytes += piece.byteLength;
      if (bytes > mostBytes) throw tooLarge(path, mostBytes);
      pieces.push(piece);
    }
  };
  const packing = pipeline(archive, createGzip(), collect);
  const adding = addPath(archive, path).catch((error: unknown) => {
    archive.destroy(error as Error);
    throw error;
  });
  const [added, packed] = await Promise.allSettled([adding, packing]);
  // The packing fails because of the adding, or ends it.
  for (const end of [packed, added]) if (end.status === 'rejected') throw toLocalError(path, end.reason);
  return Buffer.concat(pieces);
}

async function addPath(archive: Pack, path: string): Promise<void> {
  const root = await stat(path);
  if (root.isDirectory()) {
    await addEntry(archive, DIRECTORY_NAME, path, root);
    for await (const { name, local, found } of walkLocal(path))
      await addEntry(archive, `${DIRECTORY_NAME}${name}`, local, found);
  } else await addEntry(archive, FILE_NAME, path, root);
  archive.finalize();
}

async function addEntry(archive: Pack, name: string, local: string, found: Stats): Promise<void> {
  // Times and owners are not copied.
  const header = { name, mode: found.mode & PERMISSIONS, mtime: new Date(0) };
  if (found.isDirectory()) await addHeader(archive, { ...header, type: 'directory' });
  else if (found.isSymbolicLink())
    await addHeader(archive, { ...header, type: 'symlink', linkname: await readlink(local) });
  else if (found.isFile()) await addFile(archive, { ...header, type: 'file', size: found.size }, local);
  else throw localDenied(local, 'is neither a file nor a directory nor a symbolic link, so it is not copied');
}

type EntryHeader = Partial<Header> & Pick<Header, 'name'>;

const addHeader = (archive: Pack, header: EntryHeader) =>
  new Promise<void>((resolve, reject) => {
    archive.entry(header, Buffer.alloc(0), (error) => (error ? reject(error) : resolve()));
  });

async function addFile(archive: Pack, header: EntryHeader & { size: number }, local: string): Promise<void> {
  if (header.size === 0) return addHeader(archive, header);
  const source = createReadStream(local, { end: header.size - 1 });
  try {
    await new Promise<void>((resolve, reject) => {
      const entry = archive.entry(header, (error) => (error ? reject(error) : resolve()));
      // The callback gets the error, too.
      entry.on('error', () => {});
      source.on('error', reject);
      source.on('end', () => {
        if (source.bytesRead < header.size) reject(localDenied(local, 'became shorter while it was read'));
      });
      source.pipe(entry);
    });
  } finally {
    // A source whose archive fails is not closed by itself.
    source.destroy();
  }
}

function tooLarge(path: string, mostBytes: number): ShellfleetError {
  return new ShellfleetError('FILE_TOO_LARGE', `${path} has over ${mostBytes} bytes when it is packed.`, {
    path,
    limit: mostBytes,
  });
}
