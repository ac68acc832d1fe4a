import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { lockFile } from './lock-file.ts';

/** Number of a process that no machine has. */
const DEAD = 2 ** 30;

let directory: string;
const at = (name: string) => join(directory, name);
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-lock-'));
  return () => rm(directory, { recursive: true });
});

describe('the lock of a file', () => {
  test('is refused while a process has it', async () => {
    const unlock = await lockFile(at('out'));
    const refused = { code: 'COMMAND_INVALID', message: expect.stringContaining(`process ${process.pid}`) };
    await expect(lockFile(at('out'))).rejects.toMatchObject(refused);
    await unlock();
    await (await lockFile(at('out')))();
    expect(await readdir(directory)).toEqual([]);
  });

  test('is taken from a process of this machine that is dead', async () => {
    await writeFile(at('out.lock'), JSON.stringify({ machine: hostname(), pid: DEAD }));
    await (await lockFile(at('out')))();
    expect(await readdir(directory)).toEqual([]);
  });

  test.each(['', JSON.stringify({ machine: 'another', pid: DEAD })])('is not taken when it has %j', async (text) => {
    await writeFile(at('out.lock'), text);
    await expect(lockFile(at('out'))).rejects.toThrow(`remove ${at('out.lock')}`);
  });
});
