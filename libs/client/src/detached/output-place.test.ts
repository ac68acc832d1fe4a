import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { isVisibleBelow, refuseLinks } from './output-place.ts';

let directory: string;
const at = (name: string) => join(directory, name);
beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), 'shellfleet-place-')));
  return () => rm(directory, { recursive: true });
});

describe('the place of an output', () => {
  test.each(['x', 'logs/{id}/log', 'a/../b', './x', 'a.b'])('may be %s', (path) => {
    expect(isVisibleBelow(path)).toBe(true);
  });

  test.each(['../x', '/x', 'a/../../x', '.', 'a/..', '.git', '.bashrc', 'a/.git/hooks/post-checkout', 'a/.{id}'])(
    'may not be %s',
    (path) => {
      expect(isVisibleBelow(path)).toBe(false);
    },
  );

  test.each(['link', 'inner/link', 'link/new'])('is refused when %s has a symbolic link', async (path) => {
    await mkdir(at('inner'));
    await mkdir(at('secret'));
    for (const link of ['link', 'inner/link']) await symlink(at('secret'), at(link));
    await expect(refuseLinks(directory, at(path))).rejects.toMatchObject({ code: 'FILE_DENIED' });
  });

  test('is refused when it is a link to a file, or to nothing', async () => {
    await writeFile(at('file'), '');
    await symlink(at('file'), at('to-file'));
    await symlink(at('missing'), at('to-nothing'));
    for (const link of ['to-file', 'to-nothing'])
      await expect(refuseLinks(directory, at(link))).rejects.toMatchObject({ code: 'FILE_DENIED' });
    await expect(refuseLinks(directory, at('inner/new'))).resolves.toBeUndefined();
    await expect(refuseLinks(directory, at('file'))).resolves.toBeUndefined();
  });
});
