import { parsePackedFiles } from '@shellfleet/keeper';
import { describe, expect, test } from 'vitest';
import { useBox } from '../support/shell-box.ts';

// A file operation takes place at the path that the host has checked. No link on the path, or at its end, leads to
// another place.

const it = useBox({});
type Operation = Parameters<typeof it.client.file>[0];

const content = Buffer.from('new');
const file = { kind: 'file' as const, mode: 0o644, content };
const directory = { kind: 'directory' as const, mode: 0o755 };

/** Makes in /tmp/box the link `out` to a directory next to it, and the link `last` to a file in that directory. */
const prepare = () =>
  it.client.run(
    'rm -rf /tmp/box /tmp/away; mkdir -p /tmp/box/own /tmp/away/sub; echo old > /tmp/away/file; echo old > /tmp/box/own/file; ln -s /tmp/away /tmp/box/out; ln -s /tmp/away/file /tmp/box/last; chmod 644 /tmp/away/file',
  );
const state = async () =>
  (await it.client.run("cd /tmp && find box away -printf '%p %y %m %l\\n' | sort && cat away/file")).out;

describe('a file operation with an exact path', () => {
  test.each<[string, Operation]>([
    ['a read', { type: 'read', path: '/tmp/box/out/file', offset: 0, length: 9 }],
    ['a read of a link', { type: 'read', path: '/tmp/box/last', offset: 0, length: 9 }],
    ['a write', { type: 'write', path: '/tmp/box/out/file', offset: 0, data: content, truncate: true }],
    [
      'a write that makes parents',
      { type: 'write', path: '/tmp/box/out/a/b', offset: 0, data: content, parents: true },
    ],
    ['a write to a link', { type: 'write', path: '/tmp/box/last', offset: 0, data: content, truncate: true }],
    ['a list', { type: 'list', path: '/tmp/box/out' }],
    ['a list below a link', { type: 'list', path: '/tmp/box/out/sub' }],
    ['a stat below a link', { type: 'stat', path: '/tmp/box/out/file' }],
    ['a removal', { type: 'remove', path: '/tmp/box/out/file' }],
    ['a directory', { type: 'mkdir', path: '/tmp/box/out/made' }],
    ['a directory in place of a link', { type: 'mkdir', path: '/tmp/box/out' }],
    ['a renaming from below a link', { type: 'rename', path: '/tmp/box/out/file', renameTo: '/tmp/box/own/moved' }],
    ['a renaming to below a link', { type: 'rename', path: '/tmp/box/own/file', renameTo: '/tmp/box/out/moved' }],
    ['a mode', { type: 'chmod', path: '/tmp/box/out/file', mode: 0o600 }],
    ['a mode of a link', { type: 'chmod', path: '/tmp/box/last', mode: 0o600 }],
    ['an upload', { type: 'unpack', path: '/tmp/box/out', entries: [{ ...file, name: 'a' }] }],
    ['an upload below', { type: 'unpack', path: '/tmp/box', entries: [{ ...file, name: 'out/a' }] }],
    ['an uploaded directory', { type: 'unpack', path: '/tmp/box', entries: [{ ...directory, name: 'out' }] }],
    ['an uploaded mode', { type: 'unpack', path: '/tmp/box', entries: [{ ...file, kind: 'mode', name: 'last' }] }],
    ['an upload with ..', { type: 'unpack', path: '/tmp/box', entries: [{ ...file, name: '../away/a' }] }],
    ['a path with ..', { type: 'write', path: '/tmp/box/../away/a', offset: 0, data: content }],
  ])('is refused through a link, and changes nothing: %s', async (_, operation) => {
    await prepare();
    const before = await state();
    expect(await it.client.file({ ...operation, exact: true })).toMatchObject({
      out: '',
      failure: expect.stringMatching(/^(link|path-invalid)$/),
    });
    expect(await state()).toBe(before);
  });

  test('leaves out files behind a link when it packs several files', async () => {
    await prepare();
    const { stdout } = await it.client.file({
      ...{ type: 'pack', path: '/tmp/box', names: ['own/file', 'out/file', 'last'], room: 1_000, exact: true },
    });
    expect(parsePackedFiles(stdout).map(({ content }) => content.toString())).toEqual(['old\n', '', '']);
  });

  test('succeeds if no link is on the path', async () => {
    await prepare();
    const done = async (operation: Operation) =>
      expect(await it.client.file({ ...operation, exact: true })).toMatchObject({ code: 0 });
    await done({ type: 'write', path: '/tmp/box/made/a/b', offset: 0, data: content, parents: true, truncate: true });
    await done({ type: 'rename', path: '/tmp/box/made/a/b', renameTo: '/tmp/box/moved/b' });
    await done({ type: 'chmod', path: '/tmp/box/moved/b', mode: 0o600 });
    await done({
      type: 'unpack',
      path: '/tmp/box/up/load',
      entries: [
        { ...directory, name: '.' },
        { ...file, name: 'x/y' },
      ],
    });
    await done({ type: 'remove', path: '/tmp/box/out' });
    await done({ type: 'stat', path: '/tmp/box/last' });
    await done({ type: 'list', path: '/' });
    await done({ type: 'mkdir', path: '/tmp/box/moved' });
    expect((await it.client.run("cd /tmp && find box away -type f -printf '%p %m\\n' | sort")).out).toBe(
      'away/file 644\nbox/moved/b 600\nbox/own/file 644\nbox/up/load/x/y 644\n',
    );
  });

  test('never writes outside of a directory that a process keeps replacing by a link', async () => {
    await prepare();
    await it.client.run(
      'cd /tmp/box && (while :; do mkdir swap 2>/dev/null; rm -rf swap; ln -s /tmp/away swap; rm swap; done) >/dev/null 2>&1 & echo $! > /tmp/swapper',
    );
    for (let index = 0; index < 300; index += 1)
      await it.client.file({
        ...{
          type: 'write',
          path: `/tmp/box/swap/${index}`,
          offset: 0,
          data: content,
          parents: true,
          truncate: true,
          exact: true,
        },
      });
    await it.client.run('kill $(cat /tmp/swapper)');
    expect((await it.client.run('ls /tmp/away')).out).toBe('file\nsub\n');
  });
});
