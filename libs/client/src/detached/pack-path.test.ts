import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type Header, pack } from 'tar-stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { packPath } from './pack-path.ts';
import { unpackTo } from './unpack-to.ts';

type EntryHeader = Partial<Header> & Pick<Header, 'name'>;

const MOST = 1_000_000;
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'packed-'));
});
afterEach(() => rm(directory, { recursive: true }));

const at = (name: string) => join(directory, name);

/** Packs any entries, as no `packPath` does. */
async function packEntries(...headers: EntryHeader[]): Promise<Buffer> {
  const archive = pack();
  for (const header of headers) archive.entry(header, header.type === 'file' ? 'content' : Buffer.alloc(0));
  archive.finalize();
  return gzipSync(Buffer.concat(await Array.fromAsync(archive as AsyncIterable<Buffer>)));
}

async function makeTree(): Promise<string> {
  await mkdir(at('tree/sub/empty'), { recursive: true });
  await writeFile(at('tree/sub/long'), Buffer.alloc(300_000, 'long'));
  await writeFile(at('tree/nothing'), '');
  await writeFile(at('tree/run'), 'echo', { mode: 0o755 });
  await symlink('sub/long', at('tree/link'));
  return at('tree');
}

describe('a packed path', () => {
  test('is unpacked with its contents, modes and links', async () => {
    const tree = await makeTree();
    await unpackTo(await packPath(tree, MOST), at('copies/copy'), 'replace', MOST);
    const copy = at('copies/copy');
    expect((await readdir(copy, { recursive: true })).sort()).toEqual(
      (await readdir(tree, { recursive: true })).sort(),
    );
    expect((await readFile(join(copy, 'sub/long'))).equals(Buffer.alloc(300_000, 'long'))).toBe(true);
    expect((await stat(join(copy, 'run'))).mode & 0o777).toBe(0o755);
    expect(await readlink(join(copy, 'link'))).toBe('sub/long');
    expect((await packPath(copy, MOST)).equals(await packPath(tree, MOST))).toBe(true);
  });

  test('may be one file, which replaces what is there', async () => {
    await writeFile(at('file'), 'one', { mode: 0o600 });
    const packed = await packPath(at('file'), MOST);
    await mkdir(at('copy/earlier'), { recursive: true });
    await unpackTo(packed, at('copy'), 'replace', MOST);
    expect(await readFile(at('copy'), 'utf8')).toBe('one');
    await expect(unpackTo(packed, directory, 'merge', MOST)).rejects.toMatchObject({ code: 'FILE_IS_DIRECTORY' });
  });

  test('is merged into a directory', async () => {
    const tree = await makeTree();
    await mkdir(at('copy/sub'), { recursive: true });
    await writeFile(at('copy/sub/own'), 'own');
    await unpackTo(await packPath(tree, MOST), at('copy'), 'merge', MOST);
    expect((await readdir(at('copy/sub'))).sort()).toEqual(['empty', 'long', 'own']);
  });

  test('is refused when it is too large, cannot be read or has a special file', async () => {
    await writeFile(at('random'), crypto.getRandomValues(Buffer.alloc(50_000)));
    await expect(packPath(at('random'), 40_000)).rejects.toMatchObject({ code: 'FILE_TOO_LARGE' });
    await expect(packPath(at('missing'), MOST)).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await expect(packPath('/dev/null', MOST)).rejects.toMatchObject({ code: 'FILE_DENIED' });
  });

  test('leaves no file open when it is too large', async () => {
    await writeFile(at('random'), crypto.getRandomValues(Buffer.alloc(60_000)));
    await appendFile(at('random'), Buffer.alloc(1_000_000));
    const openFiles = async () => {
      const open = await readdir('/proc/self/fd');
      const paths = await Promise.all(open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
      return paths.filter((path) => path === at('random')).length;
    };
    for (let time = 0; time < 20; time++)
      await expect(packPath(at('random'), 40_000)).rejects.toMatchObject({ code: 'FILE_TOO_LARGE' });
    await expect.poll(openFiles).toBe(0);
  });

  test('is not unpacked when it would become too large', async () => {
    await writeFile(at('zeros'), Buffer.alloc(900_000));
    const packed = await packPath(at('zeros'), 10_000);
    await expect(unpackTo(packed, at('copy'), 'replace', 800_000)).rejects.toMatchObject({ code: 'FILE_TOO_LARGE' });
    expect(await readdir(directory)).toEqual(['zeros']);
  });

  test.each<[string, EntryHeader[]]>([
    ['no root', []],
    ['another root', [{ name: 'other', type: 'file' }]],
    ['a link as its root', [{ name: 'file', type: 'symlink', linkname: '/etc/passwd' }]],
    [
      'two roots',
      [
        { name: 'file', type: 'file' },
        { name: 'file', type: 'file' },
      ],
    ],
    [
      'a name above it',
      [
        { name: 'directory/', type: 'directory' },
        { name: 'directory/../up', type: 'file' },
      ],
    ],
    [
      'an absolute name',
      [
        { name: 'directory/', type: 'directory' },
        { name: 'directory//etc/x', type: 'file' },
      ],
    ],
    [
      'a fifo',
      [
        { name: 'directory/', type: 'directory' },
        { name: 'directory/f', type: 'fifo' },
      ],
    ],
  ])('is refused with %s', async (_what, headers) => {
    await expect(unpackTo(await packEntries(...headers), at('copy'), 'merge', MOST)).rejects.toMatchObject({
      code: 'FILE_DENIED',
    });
    expect(await readdir(directory)).not.toContain('up');
  });

  test('writes nothing through a link that it has itself', async () => {
    await mkdir(at('outside'));
    const packed = await packEntries(
      { name: 'directory/', type: 'directory', mode: 0o755 },
      { name: 'directory/a', type: 'symlink', linkname: '../outside' },
      { name: 'directory/a/x', type: 'file' },
    );
    await expect(unpackTo(packed, at('copy'), 'replace', MOST)).rejects.toThrow();
    expect(await readdir(at('outside'))).toEqual([]);
  });

  test('is not packed when a file of it may not be read', async () => {
    const tree = await makeTree();
    await chmod(at('tree/run'), 0);
    const reading = packPath(tree, MOST);
    // Root reads it all the same.
    if (process.getuid?.() === 0) await reading;
    else await expect(reading).rejects.toMatchObject({ code: 'FILE_DENIED' });
  });
});
