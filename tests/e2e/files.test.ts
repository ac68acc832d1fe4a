import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

describe.each(['socket', 'attach'] as const)('files over %s', (transport) => {
  let stack: TestFleet;
  let session: Session;
  let local: string;
  beforeAll(async () => {
    stack = await startFleet({ transport });
    session = await stack.fleet.session('files');
    local = await mkdtemp(join(tmpdir(), 'sf-files-'));
  });
  afterAll(async () => {
    await stack?.[Symbol.asyncDispose]();
    await rm(local, { recursive: true, force: true });
  });

  test('keep 3 MB of binary data byte for byte, and create parent directories', async () => {
    const bytes = randomBytes(3 * 2 ** 20 + 17);
    await session.files.write('/workspace/a/b/c/binary', bytes);
    expect(Buffer.from(await session.files.read('/workspace/a/b/c/binary')).equals(bytes)).toBe(true);
    const { stdout } = await session.run('wc -c < a/b/c/binary; ls -A a/b/c; stat -c %u:%g a/b/c a/b/c/binary');
    expect(stdout).toBe(`${bytes.length}\nbinary\n1000:1000\n1000:1000\n`);
  });

  test.each([0, 1, 524_287, 524_288, 524_289, 1_048_576])('keep a file of %i bytes as it was', async (size) => {
    const bytes = randomBytes(size);
    await session.files.write('/tmp/sized', bytes);
    expect(Buffer.from(await session.files.read('/tmp/sized')).equals(bytes)).toBe(true);
  });

  test('refuse a file that is too large to read into memory before sending its parts', async () => {
    await session.run('truncate -s 300M /workspace/sparse');
    await expect(session.files.read('/workspace/sparse')).rejects.toMatchObject({
      code: 'FILE_TOO_LARGE',
      context: { path: '/workspace/sparse', limit: 268_435_456 },
    });
    expect(await session.run('rm /workspace/sparse')).toMatchObject({ outcome: 'success' });
  });

  test('upload and download local files, and leave nothing of a failed download', async () => {
    const bytes = randomBytes(700_000);
    await writeFile(join(local, 'up'), bytes);
    await session.files.upload(join(local, 'up'), '/workspace/up/loaded');
    await session.files.download('/workspace/up/loaded', join(local, 'down'));
    expect((await readFile(join(local, 'down'))).equals(bytes)).toBe(true);
    await expect(session.files.download('/workspace/none', join(local, 'none'))).rejects.toMatchObject({
      code: 'FILE_NOT_FOUND',
    });
    await expect(session.files.upload(join(local, 'absent'), '/workspace/x')).rejects.toMatchObject({
      code: 'FILE_NOT_FOUND',
      message: expect.stringContaining(join(local, 'absent')),
    });
    expect((await readdir(local)).sort()).toEqual(['down', 'up']);
  });

  test('write text as UTF-8 in place of the old content, shorter or longer', async () => {
    for (const text of ['long enough to be cut é€😀', 'short', '', 'again']) {
      await session.files.write('/workspace/text', text);
      expect(await session.files.readText('/workspace/text')).toBe(text);
    }
  });

  test('list a directory with type, size, mode and time of each entry, whatever its name', async () => {
    await session.run(`mkdir -p list/sub && cd list && printf 12345 > file && ln -s file link && mkfifo pipe && : > -rf && : > 'new
line' && : > 'é "q" \\ $(x)' && chmod 640 file && touch -d 2024-05-06T07:08:09Z file; cd ..`);
    const entries = await session.files.list('/workspace/list');
    const byName = Object.fromEntries(entries.map((entry) => [entry.name, entry]));
    expect(Object.keys(byName).sort()).toEqual(
      ['-rf', 'file', 'link', 'new\nline', 'pipe', 'sub', 'é "q" \\ $(x)'].sort(),
    );
    expect(byName.file).toEqual({
      name: 'file',
      path: '/workspace/list/file',
      type: 'file',
      size: 5,
      mode: 0o640,
      modifiedAt: '2024-05-06T07:08:09.000Z',
    });
    expect([byName.sub?.type, byName.link?.type, byName.pipe?.type]).toEqual(['directory', 'symlink', 'other']);
    for (const name of ['-rf', 'new\nline', 'é "q" \\ $(x)']) {
      await session.files.write(`/workspace/list/${name}`, name);
      expect(await session.files.readText(`/workspace/list/${name}`)).toBe(name);
    }
  });

  test('copy a directory as a tar into another one, with links and modes', async () => {
    await session.run('mkdir -p tar/sub && cd tar && printf abc > sub/small && ln -s sub/small link && chmod 500 sub');
    await session.run('head -c 1500000 /dev/urandom > large; chmod 4751 large; cd ..');
    await session.files.writeTar('/workspace/copy/of', session.files.readTar('/workspace/tar'));
    expect(await session.run('diff -r tar copy/of && cd copy/of && stat -c "%a %N" sub link large; cd ../..')).toEqual(
      expect.objectContaining({ stdout: "500 'sub'\n777 'link' -> 'sub/small'\n751 'large'\n" }),
    );
    // A tar of GNU tar without the directories of its file.
    await session.run('mkdir -p new/in && printf here > new/in/it && tar -cf made.tar new/in/it');
    await session.files.writeTar('/workspace/copy/of', session.files.stream('/workspace/made.tar'));
    expect(await session.files.readText('/workspace/copy/of/new/in/it')).toBe('here');
    await expect(Array.fromAsync(session.files.readTar('/workspace/none'))).rejects.toMatchObject({
      code: 'FILE_NOT_FOUND',
    });
  });

  test('read a range of a file, with the size of the whole', async () => {
    await session.run('seq -w 0 199999 > numbers');
    const { size, mode, contents } = await session.files.open('/workspace/numbers', {
      offset: 700_000,
      length: 700_000,
    });
    expect([size, mode]).toEqual([1_400_000, 0o644]);
    const read = Buffer.concat(await Array.fromAsync(contents)).toString();
    expect([read.length, read.slice(0, 14), read.slice(-7)]).toEqual([700_000, '100000\n100001\n', '199999\n']);
    const last = session.files.stream('/workspace/numbers', { offset: 1_399_993 });
    expect(Buffer.concat(await Array.fromAsync(last)).toString()).toBe('199999\n');
    await expect(session.files.open('/workspace/numbers', { offset: -1 })).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
    });
  });

  test('remove files and whole directories', async () => {
    await session.run('mkdir -p gone/deep/er && touch gone/deep/er/f gone/f');
    await session.files.remove('/workspace/gone/f');
    await session.files.remove('/workspace/gone');
    expect((await session.run('ls -d gone')).exitCode).toBe(2);
    await expect(session.files.remove('/workspace/gone')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
  });

  test.each([
    ['read of a missing file', () => session.files.read('/workspace/none'), 'FILE_NOT_FOUND', '/workspace/none'],
    ['read of a directory', () => session.files.read('/usr'), 'FILE_IS_DIRECTORY', '/usr'],
    ['list of a missing directory', () => session.files.list('/workspace/none'), 'FILE_NOT_FOUND', '/workspace/none'],
    ['list of a file', () => session.files.list('/etc/passwd'), 'PATH_INVALID', '/etc/passwd'],
    ['write over a directory', () => session.files.write('/tmp', 'x'), 'FILE_IS_DIRECTORY', '/tmp'],
    ['write below a file', () => session.files.write('/etc/passwd/x', 'x'), undefined, '/etc/passwd/x'],
    [
      'write where only root may',
      () => session.files.write('/etc/new', 'x'),
      'FILE_DENIED',
      'Permission denied for uid 1000: /etc/new.',
    ],
    [
      'read where only root may',
      () => session.files.read('/root/x'),
      'FILE_DENIED',
      'Permission denied for uid 1000: /root/x.',
    ],
    ['read of a FIFO or device', () => session.files.read('/dev/zero'), undefined, '/dev/zero'],
    ['relative path', () => session.files.read('../../etc/passwd'), 'PATH_INVALID', '../../etc/passwd'],
    ['empty path', () => session.files.write('', 'x'), 'PATH_INVALID', ''],
    ['NUL in a path', () => session.files.remove('/tmp/a\0b'), 'PATH_INVALID', 'NUL'],
    ['path of 5,000 bytes', () => session.files.list(`/${'x'.repeat(5_000)}`), 'PATH_INVALID', '4096'],
    ['name of 300 bytes', () => session.files.write(`/tmp/${'x'.repeat(300)}`, 'x'), 'PATH_INVALID', 'xxx'],
  ])('refuse %s with its code and the path', async (_what, act, code, expected) => {
    await expect(act()).rejects.toMatchObject({
      ...(code === undefined ? { code: expect.stringMatching(/^(FILE_|PATH_)/) } : { code }),
      message: expect.stringContaining(expected),
    });
    expect((await session.run('echo on')).stdout).toBe('on\n');
  });

  test('change only the sandbox when a write follows a link out of its files', async () => {
    await session.run('ln -s /etc/passwd evil; ln -s /tmp/target inside');
    await expect(session.files.write('/workspace/evil/x', 'x')).rejects.toMatchObject({ code: expect.any(String) });
    expect((await session.run('head -1 /etc/passwd | cut -d: -f1')).stdout).toBe('root\n');
    await session.files.write('/workspace/inside', 'replaced');
    expect((await session.run('cat inside; ls /tmp/target 2>/dev/null | wc -l')).stdout).toBe('replaced0\n');
  });
});
