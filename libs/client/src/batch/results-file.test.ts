import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ResultsFile, readEarlier } from './results-file.ts';
import type { TaskResult } from './task.ts';

let directory: string;
let path: string;
let tests = 0;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-results-'));
});
beforeEach(() => {
  path = join(directory, `out-${tests++}.jsonl`);
});
afterAll(() => rm(directory, { recursive: true }));

const line = (id: string, outcome: TaskResult['outcome'], attempts = 1) => ({ id, outcome, attempts }) as TaskResult;
const NOTHING = { attempts: new Map<string, number>() };
const idsIn = async () =>
  (await readFile(path, 'utf8')).split('\n').flatMap((text) => (text === '' ? [] : [JSON.parse(text).id]));

describe('results file of a batch', () => {
  test('keeps an existing file unless the caller permits its replacement', async () => {
    await writeFile(path, 'precious');
    await expect(ResultsFile.open(path, 'new', 'n', NOTHING)).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
    expect(await readFile(path, 'utf8')).toBe('precious');
    expect((await readdir(directory)).filter((name) => name.endsWith('.batch'))).toEqual([]);
    await using _file = await ResultsFile.open(path, 'replace', 'n', NOTHING);
    expect(await readFile(path, 'utf8')).toBe('');
  });

  // FILE-1, FILE-2
  test('removes lines of tasks that run again on resume, and keeps their attempt counts', async () => {
    {
      await using file = await ResultsFile.open(path, 'new', 'first', NOTHING);
      await file.append(line('done', 'failure'));
      await file.append(line('lost', 'lost', 3));
      await file.append(line('cancelled', 'cancellation'));
    }
    await writeFile(path, '{"id":"torn","outc', { flag: 'a' });
    const earlier = await readEarlier(path);
    expect(earlier).toEqual({
      name: 'first',
      finished: new Set(['done']),
      attempts: new Map([
        ['lost', 3],
        ['cancelled', 1],
      ]),
    });
    {
      await using file = await ResultsFile.open(path, 'resume', 'first', earlier);
      expect(await idsIn()).toEqual(['done']);
      await file.append(line('lost', 'success', 4));
    }
    expect(await readEarlier(path)).toEqual({
      name: 'first',
      finished: new Set(['done', 'lost']),
      attempts: new Map([['cancelled', 1]]),
    });
    expect(await idsIn()).toEqual(['done', 'lost']);
    expect((await readdir(directory)).filter((name) => name.startsWith('out-1'))).toEqual([
      'out-1.jsonl',
      'out-1.jsonl.batch',
    ]);
  });

  test('keeps only the last line of a task that an older version wrote twice', async () => {
    const lines = [line('a', 'error'), line('b', 'success'), line('a', 'success', 2)];
    await writeFile(path, lines.map((one) => JSON.stringify(one)).join('\n'));
    await using file = await ResultsFile.open(path, 'resume', 'n', await readEarlier(path));
    await file.append(line('c', 'success'));
    expect(await idsIn()).toEqual(['b', 'a', 'c']);
  });

  test('keeps a last line without line feed and starts the next result below it', async () => {
    await writeFile(path, [line('a', 'success'), line('b', 'failure')].map((one) => JSON.stringify(one)).join('\n'));
    {
      await using file = await ResultsFile.open(path, 'resume', 'n', await readEarlier(path));
      await file.append(line('c', 'success'));
    }
    expect(await idsIn()).toEqual(['a', 'b', 'c']);
    expect((await readEarlier(path)).finished).toEqual(new Set(['a', 'b', 'c']));
  });
  test('names the file and the system error when a write fails', async () => {
    await using file = await ResultsFile.open('/dev/full', 'replace', 'n', NOTHING);
    await expect(file.append(line('a', 'success'))).rejects.toMatchObject({
      code: 'FILE_DENIED',
      message: '/dev/full on this machine cannot be used: ENOSPC: no space left on device, write.',
    });
  });
});
