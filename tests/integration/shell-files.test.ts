// File operations go through the keeper, as the container's user, and need no program in the image.

import { parseFileRecords, parsePackedFiles } from '@shellfleet/keeper';
import type { KeeperFileOperation } from '@shellfleet/worker/shell';
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { type BoxOptions, host, openBox, useBox } from '../support/shell-box.ts';
import { ShellClient } from '../support/shell-client.ts';

const boxes: [string, BoxOptions][] = [
  ['as user 1000 over the socket', {}],
  ['as user 1000 over attach', { transport: 'attach' }],
  ...host.map((transport): [string, BoxOptions] => ['on the host', { transport }]),
  ['as root', { user: '0:0' }],
  ['on a read-only root in an image with nothing but a shell', { image: 'dashOnly', readOnlyRootfs: true }],
];

describe.each(boxes)('file operations in %s', (_, options) => {
  const it = useBox(options);
  const file: typeof it.client.file = (operation) => it.client.file(operation);
  const write = (path: string, data: Uint8Array | string, more: object = {}) =>
    file({ type: 'write', path, offset: 0, data: Buffer.from(data), truncate: true, parents: true, ...more });
  const read = (path: string, offset = 0, length = 1 << 20) => file({ type: 'read', path, offset, length });

  test('read the bytes that were written, and make parent directories', async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 0, 195, 40]);
    expect(await write('/tmp/a b/c\n/ü.bin', bytes)).toMatchObject({ code: 0, err: '' });
    expect((await read('/tmp/a b/c\n/ü.bin')).stdout).toEqual(bytes);
    const middle = await read('/tmp/a b/c\n/ü.bin', 1, 2);
    expect(middle.stdout).toEqual(Buffer.from([255, 10]));
    expect(middle.err).toBe('7 644'); // the size of the whole file, and its mode
    expect(await it.client.run('read -r x < "/tmp/a b/c\n/ü.bin" || :; echo seen')).toMatchObject({
      out: 'seen\n',
      end: { reason: 'exited', shell: { state: 'kept' } },
    });
  });

  test('replace a file as a whole after several parts, and keep its mode', async () => {
    await write('/tmp/parts/run.sh', 'old');
    expect((await file({ type: 'stat', path: '/tmp/parts/run.sh' })).code).toBe(0);
    const part = Buffer.alloc(1 << 20, 'x');
    await write('/tmp/parts/.up', part);
    await file({ type: 'write', path: '/tmp/parts/.up', offset: part.length, data: part });
    expect((await read('/tmp/parts/run.sh')).out).toBe('old');
    const last = await file({
      type: 'write',
      path: '/tmp/parts/.up',
      offset: 2 * part.length,
      data: Buffer.from('end'),
      renameTo: '/tmp/parts/run.sh',
    });
    expect(last.code).toBe(0);
    const [record] = parseFileRecords((await file({ type: 'stat', path: '/tmp/parts/run.sh' })).stdout);
    expect(record).toMatchObject({ name: 'run.sh', type: 'file', size: 2 * part.length + 3, mode: 0o644 });
    expect((await read('/tmp/parts/run.sh', 2 * part.length)).out).toBe('end');
    expect((await read('/tmp/parts/.up')).failure).toBe('not-found');
  });

  test('refuse a later part that does not begin at the end of the file', async () => {
    const later = {
      type: 'write',
      path: '/tmp/later/.up',
      data: Buffer.from('x'),
      renameTo: '/tmp/later/target',
    } as const;
    await write('/tmp/later/target', 'old');
    expect((await file({ ...later, offset: 3 })).failure).toBe('parts-missing');
    await write('/tmp/later/.up', '12');
    expect((await file({ ...later, offset: 3 })).failure).toBe('parts-missing');
    expect((await file({ ...later, offset: 1 })).failure).toBe('parts-missing');
    expect((await read('/tmp/later/target')).out).toBe('old');
    await write('/tmp/later/.up', '12');
    expect((await file({ ...later, offset: 2 })).code).toBe(0);
    expect((await read('/tmp/later/target')).out).toBe('12x');
  });

  test('list a directory with types, sizes and unusual names', async () => {
    await write('/tmp/list/one', '12345');
    await write('/tmp/list/-rf', '');
    await write('/tmp/list/sub/x', '');
    const records = parseFileRecords((await file({ type: 'list', path: '/tmp/list' })).stdout);
    expect(records.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
      expect.objectContaining({ name: '-rf', type: 'file', size: 0 }),
      expect.objectContaining({ name: 'one', type: 'file', size: 5 }),
      expect.objectContaining({ name: 'sub', type: 'directory', modifiedMs: expect.any(Number) }),
    ]);
  });

  test('list a tree in pages, each of which continues after the previous one', async () => {
    for (const name of ['b/c/d', 'b/c-d', 'b/x', 'a', 'c', 'b-c']) await write(`/tmp/tree/${name}`, name);
    const names: string[] = [];
    for (let after = '', more = true; more; ) {
      const page = await file({ type: 'list', path: '/tmp/tree', depth: 0, after, pageBytes: 200 });
      const records = parseFileRecords(page.stdout);
      expect(records.length).toBeGreaterThan(0);
      names.push(...records.map(({ name }) => name));
      after = names.at(-1) ?? '';
      more = page.err === 'more';
    }
    expect(names).toEqual(['a', 'b', 'b/c', 'b/c/d', 'b/c-d', 'b/x', 'b-c', 'c']);
  });

  test('write and read many files in one step, with modes and links', async () => {
    const unpacked = await file({
      type: 'unpack',
      path: '/tmp/bundle/new',
      entries: [
        { kind: 'directory', name: '.', mode: 0o700 },
        { kind: 'file', name: 'deep/er/f', mode: 0o640, content: Buffer.from('f') },
        { kind: 'directory', name: 'deep', mode: 0o711 },
        { kind: 'symlink', name: 'l', mode: 0o777, content: Buffer.from('deep/er/f') },
        { kind: 'file', name: 'l2', mode: 0o755, content: Buffer.alloc(0) },
        { kind: 'symlink', name: 'l2', mode: 0o777, content: Buffer.from('l') },
      ],
    });
    expect([unpacked.code, unpacked.err]).toEqual([0, '']);
    const records = parseFileRecords((await file({ type: 'list', path: '/tmp/bundle/new', depth: 0 })).stdout);
    expect(records.map(({ name, type, mode, target }) => [name, type, type === 'symlink' ? target : mode])).toEqual([
      ['deep', 'directory', 0o711],
      ['deep/er', 'directory', 0o755],
      ['deep/er/f', 'file', 0o640],
      ['l', 'symlink', 'deep/er/f'],
      ['l2', 'symlink', 'l'],
    ]);
    const names = ['deep/er/f', 'l', 'none', 'deep', 'deep/er/f'];
    const packed = parsePackedFiles((await file({ type: 'pack', path: '/tmp/bundle/new', names, room: 1 })).stdout);
    expect(packed.map(({ errno, content }) => [errno, content.toString()])).toEqual([
      [0, 'f'],
      [40, ''],
      [2, ''],
      [21, ''],
      [27, ''],
    ]);
    const refused = await file({
      type: 'unpack',
      path: '/tmp/bundle',
      entries: [{ kind: 'file', name: '/etc/f', mode: 0o644, content: Buffer.from('f') }],
    });
    expect(refused.failure).toBe('path-invalid');
  });

  test('run once each, four at a time, while an entry is being stopped', async () => {
    const { files } = it.client.shell;
    const command = it.client.run('trap "" INT TERM; while :; do sleep 0.05; done', {
      timeoutMs: 300,
      killGraceMs: 600,
    });
    const ids = Array.from({ length: 6 }, () => ulid());
    const data = Buffer.alloc(2 << 20, 'x');
    const call = (id: string) =>
      files.call(id, { type: 'write', path: `/tmp/calls-${id}`, offset: 0, data, truncate: true }, 10_000);
    const ends: string[] = [];
    for (const id of ids) ends.push((await call(id)).type);
    expect(ends).toEqual(ids.map(() => 'done'));
    const atOnce = await Promise.all(
      ids.map((id) => files.call(`${id.slice(0, -1)}Z`, { type: 'stat', path: '/' }, 10_000)),
    );
    expect(atOnce.map(({ type }) => type).filter((type) => type !== 'busy').length).toBeGreaterThanOrEqual(4);
    expect(await call(ids[0] ?? '')).toEqual({ type: 'done-before', failure: undefined });
    // mutants-3, `file-ended-error`
    const id = ulid();
    const failing = () => files.call(id, { type: 'remove', path: '/tmp/none' }, 10_000);
    expect(await failing()).toMatchObject({ type: 'failed', failure: 'not-found' });
    expect(await failing()).toEqual({ type: 'done-before', failure: 'not-found' });
    expect((await command).end.reason).toBe('wall');
    for (const id of ids) await files.call(ulid(), { type: 'remove', path: `/tmp/calls-${id}` }, 10_000);
  });

  test('remove files and directories without following links', async () => {
    await write('/tmp/rm/dir/deep/x', 'x');
    await write('/tmp/rm/kept/x', 'x');
    expect((await file({ type: 'remove', path: '/tmp/rm/dir' })).failure).toBe('is-directory');
    expect((await file({ type: 'remove', path: '/tmp/rm/dir', recursive: true })).code).toBe(0);
    expect((await file({ type: 'stat', path: '/tmp/rm/dir' })).failure).toBe('not-found');
    expect((await read('/tmp/rm/kept/x')).out).toBe('x');
    expect((await file({ type: 'remove', path: '/tmp/rm/kept/x' })).code).toBe(0);
  });

  // fault 107: with one descriptor for each level the keeper ran out of them.
  test('remove a directory of 3,000 levels without following a link at its end', async () => {
    const half = '/x'.repeat(1_500); // one path of all 3,000 levels would be too long
    for (const name of ['a', 'b'])
      expect((await file({ type: 'mkdir', path: `/tmp/deep/${name}${half}` })).code).toBe(0);
    await write('/tmp/deep/outside/kept', '');
    const entries = [{ kind: 'symlink', name: 'l', mode: 0o777, content: Buffer.from('/tmp/deep/outside') }] as const;
    expect((await file({ type: 'unpack', path: `/tmp/deep/b${half}`, entries })).code).toBe(0);
    expect((await file({ type: 'rename', path: '/tmp/deep/b', renameTo: `/tmp/deep/a${half}/b` })).code).toBe(0);
    expect((await file({ type: 'remove', path: '/tmp/deep/a' })).failure).toBe('is-directory');
    expect(await file({ type: 'remove', path: '/tmp/deep/a', recursive: true })).toMatchObject({ code: 0, err: '' });
    const left = parseFileRecords((await file({ type: 'list', path: '/tmp/deep', depth: 0 })).stdout);
    expect(left.map(({ name }) => name)).toEqual(['outside', 'outside/kept']);
  });

  test.each([
    ['a missing file', { type: 'read', path: '/tmp/nothing', offset: 0, length: 1 }, 'not-found'],
    ['a directory as a file', { type: 'read', path: '/tmp', offset: 0, length: 1 }, 'is-directory'],
    ['a file as a directory', { type: 'list', path: '/.shellfleet/keeper' }, 'path-invalid'],
    ['a device', { type: 'read', path: '/dev/zero', offset: 0, length: 1 }, 'path-invalid'],
    [
      'a place without write permission',
      { type: 'write', path: '/proc/1/x', offset: 0, data: Buffer.from('x') },
      undefined,
    ],
    [
      'a name that is too long',
      { type: 'write', path: `/tmp/${'n'.repeat(300)}`, offset: 0, data: Buffer.from('x') },
      'path-invalid',
    ],
  ] as const)('report the path in the error: %s', async (_name, operation, failure) => {
    const ended = await file(operation);
    expect(ended.code).toBe(1);
    if (failure) expect(ended.failure).toBe(failure);
    expect(ended.err).toContain(operation.path);
    expect((await it.client.run(':')).state).toBe('kept');
  });

  test('refuse a relative path', async () => {
    await expect(read('relative')).rejects.toThrow('refused: invalid');
  });
});

describe('a file call', () => {
  const it = useBox();
  const stat = { type: 'stat', path: '/' } as const;

  test('is killed when it is stopped, and counts as begun', async () => {
    const { files } = it.client.shell;
    const { id, reading } = await it.client.readFrozen();
    files.stop(ulid());
    expect(await files.hasBegun(ulid())).toBe(false);
    files.stop(id);
    expect(await reading).toEqual({ type: 'killed' });
    expect(await files.hasBegun(id)).toBe(true);
    expect(await files.call(id, stat, 10_000)).toEqual({ type: 'killed' });
  });

  test('is not begun again while it runs for an earlier worker', async () => {
    const before = it.client.shell;
    const { id, reading } = await it.client.readFrozen();
    before.disconnect();
    expect(await reading).toEqual({ type: 'gone' });
    const { files } = new ShellClient(await it.box.connect()).shell;
    for (let others = 0; others < 260; others += 1) await files.call(ulid(), stat, 10_000);
    expect(await files.hasBegun(id)).toBe(true);
    expect(await files.call(id, stat, 10_000)).toEqual({ type: 'busy' });
    files.stop(id);
    await expect.poll(() => files.call(id, stat, 10_000)).toEqual({ type: 'killed' });
  });
});

describe('file operations on a full file system', () => {
  const it = useBox();

  // mutants-3: `write-rename` and `unpack-parent`
  test.each<[string, (content: Buffer) => KeeperFileOperation[]]>([
    [
      'a file',
      (data) => [
        {
          type: 'write',
          path: '/dev/shm/d/.up',
          offset: 0,
          data,
          truncate: true,
          parents: true,
          renameTo: '/dev/shm/d/target',
        },
      ],
    ],
    [
      'a file of two parts',
      (data) => [
        { type: 'write', path: '/dev/shm/d/.up', offset: 0, data: Buffer.from('1'), truncate: true, parents: true },
        { type: 'write', path: '/dev/shm/d/.up', offset: 1, data, renameTo: '/dev/shm/d/target' },
      ],
    ],
    [
      'a file whose second part of three does not fit',
      (data) => [
        { type: 'write', path: '/dev/shm/d/.up', offset: 0, data: Buffer.from('1'), truncate: true, parents: true },
        { type: 'write', path: '/dev/shm/d/.up', offset: 1, data },
        {
          type: 'write',
          path: '/dev/shm/d/.up',
          offset: 1 + data.length,
          data: Buffer.from('3'),
          renameTo: '/dev/shm/d/target',
        },
      ],
    ],
    [
      'one of many small files',
      (content) => [
        { type: 'unpack', path: '/dev/shm/d', entries: [{ kind: 'file', name: 'target', mode: 0o644, content }] },
      ],
    ],
  ])('keep the previous files: %s', async (_, operations) => {
    const send = async (content: Buffer) => {
      for (const operation of operations(content)) {
        const { failure } = await it.client.file(operation);
        if (failure !== undefined) return failure;
      }
      return 'done';
    };
    await it.client.run('rm -rf /dev/shm/*');
    expect(await send(Buffer.from('old'))).toBe('done');
    const before = await it.client.file({ type: 'read', path: '/dev/shm/d/target', offset: 0, length: 100 });
    await it.client.run('head -c 200M /dev/zero > /dev/shm/filler; truncate -s -65536 /dev/shm/filler');
    expect(await send(Buffer.alloc(200_000, 'x'))).toBe('no-space');
    const after = await it.client.file({ type: 'read', path: '/dev/shm/d/target', offset: 0, length: 100 });
    expect([after.code, after.out]).toEqual([0, before.out]);
    expect((await it.client.run('ls -A /dev/shm/d')).out).toBe('target\n');
  });
});

describe('a file operation beside a command that fills the limit of processes', () => {
  test('fails with that reason, and works when the command has ended', async () => {
    await using it = await openBox({ pids: 64 });
    const script = 'for i in $(seq 100); do sleep 300 & done';
    const filling = it.client.run(script, { timeoutMs: 5_000, killGraceMs: 600 });
    const failure = async () => (await it.client.file({ type: 'stat', path: '/' })).failure;
    await expect.poll(failure, { timeout: 4_000 }).toBe('no-process');
    await filling;
    expect(await failure()).toBeUndefined();
  });
});
