// fault 101. A file operation may name any path of the sandbox. No path leads into the keeper's own directory, from
// which the shell reads its scripts and to which it writes its state.

import { parseFileRecords } from '@shellfleet/keeper';
import type { KeeperFileOperation } from '@shellfleet/worker/shell';
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { type BoxOptions, host, useBox } from '../support/shell-box.ts';

const TRIES = 10_000;
const AT_ONCE = 4;

const boxes: [string, string, BoxOptions][] = [
  ['a mount of its own', '/run/shellfleet', {}],
  ['a directory of a larger mount', '/tmp/own', { env: { SF_DIRECTORY: '/tmp/own' } }],
  ...host.map((transport): [string, string, BoxOptions] => ['on the host', '/.shellfleet-run', { transport }]),
];

/** Returns other paths to a name in the directory. `prepare` makes the links. */
const waysTo = (directory: string, name: string): string[] => [
  `${directory}/${name}`,
  `${directory}/${name}/`,
  `${directory}/${name}/.`,
  `${directory}/./${name}`,
  `/${directory}//${name}`,
  `${directory}/../${directory.split('/').at(-1)}/${name}`,
  `/proc/self/root${directory}/${name}`,
  `/proc/1/root${directory}/${name}`,
  `/proc/self/fd/3/${name}`,
  `/proc/self/cwd/..${directory}/${name}`,
  `/tmp/links/directory/${name}`,
];

const parentOf = (path: string) => path.slice(0, path.lastIndexOf('/', path.length - 2) + 1);
const nameOf = (path: string) => path.slice(parentOf(path).length);
const data = Buffer.from('echo swapped\n');
const unpack = (path: string, entry: object) =>
  ({ type: 'unpack', path: parentOf(path), entries: [{ name: nameOf(path), mode: 0o777, ...entry }] }) as never;

/** Returns every operation that can be requested on a path. */
const everything = (path: string): KeeperFileOperation[] => [
  { type: 'read', path, offset: 0, length: 100 },
  { type: 'write', path, offset: 0, data, truncate: true, parents: true },
  { type: 'write', path: '/tmp/links/part', offset: 0, data, truncate: true, renameTo: path },
  { type: 'write', path: `${parentOf(path)}.part`, offset: 0, data, parents: true, renameTo: path },
  { type: 'list', path },
  { type: 'remove', path },
  { type: 'remove', path, recursive: true },
  { type: 'mkdir', path: `${path}/below` },
  { type: 'rename', path, renameTo: '/tmp/links/taken' },
  { type: 'rename', path: '/tmp/links/mine', renameTo: path },
  { type: 'chmod', path, mode: 0 },
  unpack(path, { kind: 'file', content: data }),
  unpack(path, { kind: 'symlink', content: data }),
  unpack(path, { kind: 'directory' }),
  unpack(path, { kind: 'mode' }),
];

/** Operations that follow a link. The others replace a link by another file, and leave its target alone. */
const throughLink = (path: string) =>
  everything(path).filter(
    (operation) =>
      /read|chmod/.test(operation.type) || (operation.type === 'write' && operation.truncate && !operation.renameTo),
  );

describe.each(boxes)('the directory of a keeper, as %s', (_, directory, options) => {
  const it = useBox(options);

  const call = (operation: KeeperFileOperation) => it.client.shell.files.call(ulid(), operation, 10_000);
  /** Returns the names of those operations that were not refused. */
  const done = async (operations: readonly KeeperFileOperation[]): Promise<string[]> => {
    const found: string[] = [];
    const waiting = [...operations];
    const work = async () => {
      for (let next = waiting.pop(); next; next = waiting.pop()) {
        const { type } = await call(next);
        if (type !== 'failed') found.push(`${type}: ${JSON.stringify(next)}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return found;
  };
  const prepare = async (): Promise<string[]> => {
    const { out } = await it.client.run(
      `cd ${directory}; rm -rf /tmp/links; mkdir -p /tmp/links; echo echo mine > /tmp/links/mine; ln -s ${directory} /tmp/links/directory
      for n in *; do ln -s ${directory}/$n /tmp/links/to-$n; ln $n /tmp/links/hard-$n 2>/dev/null; done; cd /; ls ${directory} /tmp/links`,
    );
    return out.split('\n').filter((name) => name !== '' && !name.endsWith(':'));
  };
  // Files by inode, type, mode, owner and name. FIFOs of outputs have no inode here: the keeper makes a FIFO anew if
  // another process has it open when a command ends, as a refused operation has for an instant.
  const identities = async () =>
    (
      await it.client.run(
        `{ ls -ind ${directory}; ls -in ${directory}; } | awk '{ print ($2 ~ /^p/ ? "-" : $1), $2, $4, $5, $NF }'`,
      )
    ).out;

  test('is out of reach of all file operations, while commands run normally', async () => {
    const found = await prepare();
    const isLink = (name: string) => /^(hard|to)-/.test(name);
    // A hard link to the FIFO of an output leads nowhere after that FIFO was made anew.
    const links = found.filter((name) => isLink(name) && !/^hard-std/.test(name));
    const names = found.filter((name) => !isLink(name) && !['directory', 'mine'].includes(name));
    expect(links.filter((name) => name.startsWith('hard')).length > 0).toBe(directory.startsWith('/tmp'));
    expect(names).toEqual(expect.arrayContaining(['go', 'report', 'state', 'options', 'old', 'stdout', 'stderr']));
    // The shell keeps the FIFOs of its last command open, and these may be made anew in the same way.
    const { out } = await it.client.run(
      `for fd in /proc/$$/fd/*; do case $(readlink $fd) in ${directory}/std*) ;; *) echo $fd; esac; done`,
    );
    const descriptors = out.trim().split('\n');
    expect(descriptors.length).toBeGreaterThan(12);
    const every = [
      ...names.flatMap((name) => waysTo(directory, name)).flatMap(everything),
      ...links.flatMap((name) => throughLink(`/tmp/links/${name}`)),
      ...descriptors.flatMap(everything),
    ];
    const before = await identities();
    const rounds = options.env || options.transport ? 1 : Math.ceil(TRIES / every.length);
    let isOver = false;
    const commands = (async () => {
      for (let n = 0; !isOver; n++) expect((await it.client.run(`echo ${n}`)).out).toBe(`${n}\n`);
    })();
    const reached: string[] = [];
    for (let round = 0; round < rounds; round++) reached.push(...(await done(every)));
    isOver = true;
    await commands;
    expect(reached).toEqual([]);
    expect(await identities()).toBe(before);
  }, 120_000);

  test('cannot be removed or renamed, and neither can its parents', async () => {
    await prepare();
    const above = directory.split('/').slice(0, -1).join('/') || directory;
    const before = await identities();
    expect(
      await done([
        ...[directory, `${directory}/`, above, `/proc/self/root${above}`, '/tmp/links/directory/'].flatMap(
          (path): KeeperFileOperation[] => [
            { type: 'remove', path, recursive: true },
            { type: 'rename', path, renameTo: '/tmp/links/taken' },
          ],
        ),
        { type: 'list', path: directory },
        { type: 'chmod', path: directory, mode: 0o777 },
        { type: 'write', path: `${directory}/new`, offset: 0, data },
        { type: 'mkdir', path: `${directory}/new/er` },
      ]),
    ).toEqual([]);
    expect(await identities()).toBe(before);
    const { stderr } = (await call({ type: 'read', path: `${directory}/state`, offset: 0, length: 1 })) as {
      stderr: Buffer;
    };
    expect(stderr.toString()).toBe(
      `${directory}/state: the directory of the session's keeper is not for file operations\n`,
    );
  });

  test('is shown as inaccessible in a list of the whole tree', async () => {
    const listed = await call({ type: 'list', path: parentOf(directory), depth: 2 });
    expect(listed).toMatchObject({ type: 'done' });
    const names = parseFileRecords((listed as { stdout: Buffer }).stdout).map(({ name }) => name);
    expect(names.filter((name) => name.startsWith(nameOf(directory)))).toEqual([nameOf(directory)]);
  });
});
