import { mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FileOperation, FileRecord, FileReply } from '@shellfleet/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { downloadDirectory } from './download-directory.ts';
import type { FileSteps } from './file-steps.ts';
import { Progress } from './progress.ts';

let outside: string;
let target: string;
beforeEach(async () => {
  outside = await mkdtemp(join(tmpdir(), 'shellfleet-download-'));
  target = join(outside, 'target');
  await mkdir(target);
});
afterEach(() => rm(outside, { recursive: true }));

const plain = { size: 4, mode: 0o644, modifiedAt: '' };
const file = (name: string): FileRecord => ({ ...plain, name, type: 'file' });
const directory = (name: string): FileRecord => ({ ...plain, name, type: 'directory', mode: 0o755 });
const link = (name: string, to: string): FileRecord => ({ ...plain, name, type: 'symlink', target: to });

/** Returns the steps of a hostile sandbox, which lists these records and has `evil` as the content of every file. */
function hostile(records: FileRecord[], epochs: number[] = []): FileSteps {
  let step = 0;
  const answerOf = (operation: FileOperation): FileReply => {
    if (operation.name === 'list') return { records };
    if (operation.name === 'stat') return { records: [directory('.')] };
    if (operation.name === 'read') return { data: Buffer.from('evil').toString('base64'), size: 4, mode: 0o644 };
    if (operation.name !== 'pack') throw new Error(`unexpected ${operation.name}`);
    const data = Buffer.from('evil').toString('base64');
    return { files: operation.names.map(() => ({ state: 'read', mode: 0o4755, data })) };
  };
  return {
    ahead: 1,
    send: async (operation) => ({
      reply: async () => ({ ...answerOf(operation), epoch: epochs[step++] ?? 1 }),
    }),
  };
}

const copy = (records: FileRecord[], epochs?: number[]) =>
  downloadDirectory(hostile(records, epochs), '/tree', target, new Progress(undefined), {});

describe('download of a directory', () => {
  test.each(['../evil', '/etc/evil', 'a/../../evil', 'a/./evil', 'a//evil', '.', '..', '', 'a/', 'nul\0name'])(
    'refuses the name %j, and writes nothing outside the target',
    async (name) => {
      await expect(copy([directory('a'), file(name)])).rejects.toMatchObject({ code: 'FILE_DENIED' });
      expect(await readdir(outside)).toEqual(['target']);
    },
  );

  test('writes nothing through a symbolic link that the sandbox sent', async () => {
    await expect(copy([link('way', '..'), file('way/evil')])).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await expect(copy([link('way', '..'), directory('way'), file('way/evil')])).rejects.toMatchObject({
      code: 'FILE_DENIED',
      message: expect.stringContaining('in the way of a symbolic link'),
    });
    expect(await readdir(outside)).toEqual(['target']);
  });

  test('does not follow a symbolic link that exists in the target', async () => {
    await symlink('..', join(target, 'way'));
    await expect(copy([directory('way'), file('way/evil')])).rejects.toMatchObject({
      code: 'FILE_DENIED',
      message: expect.stringContaining('which is not followed'),
    });
    await expect(copy([file('way/evil')])).rejects.toMatchObject({ code: 'FILE_DENIED' });
    expect(await readdir(outside)).toEqual(['target']);
  });

  test('replaces a symbolic link by a file of its name, and keeps the linked file', async () => {
    await writeFile(join(outside, 'mine'), 'mine');
    await symlink('../mine', join(target, 'f'));
    await copy([file('f')]);
    expect(await readFile(join(outside, 'mine'), 'utf8')).toBe('mine');
    expect(await readFile(join(target, 'f'), 'utf8')).toBe('evil');
  });

  test('keeps link targets and newlines in names, and removes setuid bits', async () => {
    await copy([link('out', '/etc/passwd'), file('new\nline')]);
    expect(await readlink(join(target, 'out'))).toBe('/etc/passwd');
    const { lstat } = await import('node:fs/promises');
    expect((await lstat(join(target, 'new\nline'))).mode & 0o7777).toBe(0o755);
  });

  const large = (name: string): FileRecord => ({ ...file(name), size: 600_000 });

  test.each<[string, FileRecord[]]>([
    ['small files', [file('a'), file('b')]],
    ['large files', [large('a'), large('b')]],
    ['large and small files', [large('a'), file('b'), large('c')]],
  ])('fails for %s when the sandbox is replaced at any step', async (_what, records) => {
    // The directory and its list take a step each, a large file takes one, and all small files together take one.
    const steps = 2 + records.filter(({ size }) => size > 4).length + (records.some(({ size }) => size === 4) ? 1 : 0);
    await copy(records, Array(steps).fill(1));
    for (let replacedAfter = 1; replacedAfter < steps; replacedAfter++) {
      const epochs = Array.from({ length: steps }, (_, step) => (step < replacedAfter ? 1 : 2));
      await expect(copy(records, epochs), `replaced after ${replacedAfter} steps`).rejects.toMatchObject({
        code: 'CONTAINER_LOST',
      });
    }
  });
});

/** Returns the names below the target that are not complete. */
const incomplete = async () => (await readdir(target)).filter((name) => name.endsWith('.part'));

describe('an interrupted download', () => {
  test('removes its incomplete file while a part is still outstanding', async () => {
    const size = 3 * 524_288;
    const steps = hostile([{ ...file('large'), size }]);
    const outstanding = Promise.withResolvers<never>();
    const send: FileSteps['send'] = async (operation) => {
      if (operation.name !== 'read') return steps.send(operation);
      if (operation.offset > 0) return { reply: () => outstanding.promise };
      const data = Buffer.alloc(operation.length).toString('base64');
      return { reply: async () => ({ data, size, mode: 0o644, epoch: 1 }) };
    };
    const stop = new AbortController();
    const progress = new Progress(undefined);
    const download = downloadDirectory({ ...steps, send }, '/tree', target, progress, { signal: stop.signal });
    download.catch(() => {});
    await expect.poll(incomplete).toHaveLength(1);
    stop.abort(new Error('stopped'));
    await expect(download).rejects.toThrow('stopped');
    expect(await readdir(target)).toEqual([]);
  });

  test('writes nothing any more once it has rejected', async () => {
    const records = Array.from({ length: 200 }, (_, index) => file(`f${index}`));
    const stop = new AbortController();
    const progress = new Progress(() => stop.abort(new Error('stopped')));
    const download = downloadDirectory(hostile(records), '/tree', target, progress, { signal: stop.signal });
    await expect(download).rejects.toThrow('stopped');
    expect(await incomplete()).toEqual([]);
    const names = await readdir(target);
    expect(names.length).toBeLessThan(records.length);
    expect(await Promise.all(names.map((name) => readFile(join(target, name), 'utf8')))).toEqual(
      names.map(() => 'evil'),
    );
  });
});
