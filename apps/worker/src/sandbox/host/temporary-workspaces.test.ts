import { chmod, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openTemporaryWorkspaces } from './temporary-workspaces.ts';

let parent: string;
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'shellfleet-workspaces-'));
});
afterEach(() => rm(parent, { recursive: true }));

const open = () => {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
  return openTemporaryWorkspaces(join(parent, 'w'), { uid, gid, isOurs: true } as never);
};

describe('temporary workspaces', () => {
  // fault 107
  test('removes a workspace with overlong paths, and follows no link', async () => {
    const workspaces = await open();
    const workspace = await workspaces.create('deep');
    const half = Array(30).fill('x'.repeat(100)).join('/');
    for (const name of ['a', 'b']) await mkdir(join(workspace, name, half), { recursive: true });
    await writeFile(join(workspace, 'b', half, 'data'), 'secret');
    await writeFile(join(parent, 'kept'), '');
    await symlink(parent, join(workspace, 'b', half, 'link'));
    await rename(join(workspace, 'b'), join(workspace, 'a', half, 'b'));
    await workspaces.remove('deep');
    expect(await workspaces.names()).toEqual([]);
    await rm(join(parent, 'kept')); // fails if the removal has followed the link
  });

  test('removes a workspace with directories that no user may enter', async () => {
    const workspaces = await open();
    const workspace = await workspaces.create('closed');
    await mkdir(join(workspace, 'closed', 'below'), { recursive: true });
    await chmod(join(workspace, 'closed'), 0);
    await workspaces.remove('closed');
    await workspaces.remove('closed');
    expect(await workspaces.names()).toEqual([]);
  });
});
