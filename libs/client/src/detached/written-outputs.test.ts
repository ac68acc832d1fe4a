import { appendFile, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { WrittenOutputs } from './written-outputs.ts';

let directory: string;
const at = (name: string) => join(directory, name);
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-written-'));
  return () => rm(directory, { recursive: true });
});

describe('the outputs that an attach has written', () => {
  test('may be written again, and nothing else that is there', async () => {
    await writeFile(at('mine'), '');
    await symlink(at('missing'), at('link'));
    await using written = await WrittenOutputs.open(at('record'), 'new');
    await written.claim(at('new'));
    await writeFile(at('new'), '');
    await expect(written.claim(at('new'))).resolves.toBeUndefined();
    for (const other of ['mine', 'link', 'record'])
      await expect(written.claim(at(other))).rejects.toMatchObject({ code: 'FILE_DENIED' });
  });

  test('are known to a later attach, also after a note that was cut', async () => {
    for (const name of ['first', 'second']) {
      await using written = await WrittenOutputs.open(at('record'), name === 'first' ? 'new' : 'resume');
      await written.claim(at(name));
      await writeFile(at(name), '');
      await appendFile(at('record'), '"cut');
    }
    await using written = await WrittenOutputs.open(at('record'), 'resume');
    for (const name of ['first', 'second']) await expect(written.claim(at(name))).resolves.toBeUndefined();
  });

  test('are noted in no file that was there, nor in one without need', async () => {
    await using _unused = await WrittenOutputs.open(at('record'), 'new');
    await using memory = WrittenOutputs.inMemory();
    await memory.claim(at('new'));
    expect(await readdir(directory)).toEqual([]);
    await writeFile(at('record'), 'mine');
    await expect(WrittenOutputs.open(at('record'), 'new')).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
  });
});
