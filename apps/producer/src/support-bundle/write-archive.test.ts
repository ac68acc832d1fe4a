import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isArchive, writeArchive } from './write-archive.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-archive-'));
});
afterAll(() => rm(directory, { recursive: true }));

describe('an archive', () => {
  test.each([
    ['a.tgz', true],
    ['a.tar.gz', true],
    ['a', false],
    ['a.tgz.d', false],
  ])('is what %s is to be: %s', (path, is) => expect(isArchive(path)).toBe(is));

  test('has its files in a directory of its name, whole', async () => {
    const path = join(directory, 'a.tar.gz');
    const log = 'a line of a log \u20ac\n'.repeat(120_000);
    await writeArchive(
      path,
      async () =>
        new Map([
          ['none', ''],
          ['workers.log', log],
        ]),
    );
    const tar = (...args: string[]) => execFileSync('tar', args, { maxBuffer: 8_000_000 }).toString();
    expect(tar('-tzf', path)).toBe('a/none\na/workers.log\n');
    expect(tar('-xzOf', path, 'a/workers.log') === log).toBe(true);
  });

  test('leaves nothing when its files cannot be collected', async () => {
    const path = join(directory, 'b.tgz');
    const collect = () => Promise.reject(new Error('no files'));
    await expect(writeArchive(path, collect)).rejects.toThrow('no files');
    expect(await readdir(directory)).not.toContain('b.tgz');
  });
});
