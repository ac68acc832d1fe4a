import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Files } from '../files/files.ts';
import { taskSchema } from './task.ts';
import { fetchOutputs, inputFiles, outputPlaces, toFileName } from './task-outputs.ts';

describe('files of a task', () => {
  test('come from the paths of its run', () => {
    const files = { '/a': '/in/{id}/{repeat}.diff', '/b': '/in/b' };
    expect(inputFiles(files, '../x y', 3)).toEqual({ '/a': '/in/..%2Fx%20y/3.diff', '/b': '/in/b' });
  });
});

describe('outputs of a task', () => {
  test('are not fetched in part when the disk of this machine is full', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sf-outputs-'));
    const fetch = (code: string) => {
      const failed = Object.assign(new Error(code), { code, syscall: 'write' });
      const files = { download: () => Promise.reject(failed) } as unknown as Files;
      const places = [{ path: '/o', local: join(directory, 'o'), isOwn: true }];
      return fetchOutputs(files, places, new AbortController().signal);
    };
    expect(await fetch('EACCES')).toMatchObject({ '/o': { error: { code: 'FILE_DENIED' } } });
    await expect(fetch('ENOSPC')).rejects.toMatchObject({ code: 'FILE_DENIED' });
    await rm(directory, { recursive: true });
  });
});

describe('places of outputs', () => {
  test('have the id as one name of a file and the number of the repeat', () => {
    const outputs = { '/a': '/out/{id}/{repeat}/a', '/b': '/out/{repeat}/b' };
    expect(outputPlaces(outputs, '../x y', 3)).toEqual([
      { path: '/a', local: '/out/..%2Fx%20y/3/a', isOwn: true },
      { path: '/b', local: '/out/3/b', isOwn: false },
    ]);
  });

  test('belong to one task only if the id stays in the path', () => {
    expect(outputPlaces({ '/a': '/out/{id}/..' }, 'x', 1)).toEqual([{ path: '/a', local: '/out', isOwn: false }]);
  });

  test.each([
    [{ '/a': 'out/{id}/a', '/b': 'out/{id}' }, false],
    [{ '/a': 'out/{id}', '/b': 'out/{id}' }, false],
    [{ '/a': 'out/{id}/a', '/b': 'out/{id}/b' }, true],
    [{ '/a': 'out/{id}', '/b': 'out' }, true],
  ])('%j are accepted unless one would replace the other', (outputs, accepted) => {
    expect(taskSchema.safeParse({ id: 'a', script: 'true', outputs }).success).toBe(accepted);
  });

  test('are inside the directory, short and different, whatever the ids', () => {
    const ids = ['a', '.', '..', '...', 'a/b', 'a%2Fb', 'a b', '\ud800', 'ä'.repeat(256), `${'ä'.repeat(255)}b`];
    const names = ids.map(toFileName);
    for (const name of names) expect(name).toMatch(/^(?!\.+$)[A-Za-z0-9._%-]{1,200}$/);
    expect(new Set(names).size).toBe(ids.length);
  });
});
