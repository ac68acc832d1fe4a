import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { IdSet } from './id-set.ts';
import { type BatchManifest, manifestSchema } from './manifest.ts';
import { ResultsFile, readBatchResults, readEarlier } from './results-file.ts';
import type { TaskResult } from './task-result.ts';

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

const line = (id: string, outcome: TaskResult['outcome'], attempts = 1): TaskResult => ({
  ...{ id, task: id, repeat: 1, passed: outcome === 'success', outcome, sessionId: '', results: [], attempts },
  ...{ startedAt: '', durationMs: 0, outputBytes: 0 },
});
const manifest = (name: string, attempts = new Map<string, number>()): BatchManifest =>
  manifestSchema.parse({ name, attempts: Object.fromEntries(attempts) });
const NOTHING = manifest('n');
const setOf = (...ids: string[]) => {
  const set = new IdSet();
  for (const id of ids) set.add(id);
  return set;
};
const idsIn = async () =>
  (await readFile(path, 'utf8')).split('\n').flatMap((text) => (text === '' ? [] : [JSON.parse(text).id]));

describe('results file of a batch', () => {
  test('keeps an existing file unless the caller permits its replacement', async () => {
    await writeFile(path, 'precious');
    await expect(ResultsFile.open(path, 'new', NOTHING)).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
    expect(await readFile(path, 'utf8')).toBe('precious');
    expect((await readdir(directory)).filter((name) => name.endsWith('.batch'))).toEqual([]);
    await using _file = await ResultsFile.open(path, 'replace', NOTHING);
    expect(await readFile(path, 'utf8')).toBe('');
  });

  test('has one line for a result, whatever line ends of Unicode its output has', async () => {
    {
      await using file = await ResultsFile.open(path, 'new', NOTHING);
      await file.append({ ...line('a', 'success'), score: 1, task: 'one\u2028two\u2029three' });
    }
    expect(await Array.fromAsync(readBatchResults(path))).toMatchObject([{ id: 'a', task: 'one\u2028two\u2029three' }]);
    // Another program may have written the file anew, without escapes.
    await writeFile(path, (await readFile(path, 'utf8')).replace('\\u2028', '\u2028').replace('\n', '\r\n'));
    expect(await Array.fromAsync(readBatchResults(path))).toMatchObject([{ id: 'a', task: 'one\u2028two\u2029three' }]);
    expect((await readEarlier(path)).finished).toEqual(setOf('a'));
  });

  // FILE-1, FILE-2
  test('removes lines of tasks that run again on resume, and keeps their attempt counts', async () => {
    {
      await using file = await ResultsFile.open(path, 'new', manifest('first'));
      await file.append(line('done', 'failure'));
      await file.append(line('lost', 'lost', 3));
      await file.append(line('cancelled', 'cancellation'));
    }
    await writeFile(path, '{"id":"torn","outc', { flag: 'a' });
    const earlier = await readEarlier(path);
    expect(earlier).toMatchObject({
      manifest: { name: 'first' },
      finished: setOf('done'),
      attempts: new Map([
        ['lost', 3],
        ['cancelled', 1],
      ]),
    });
    {
      await using file = await ResultsFile.open(path, 'resume', manifest('first', earlier.attempts));
      expect(await idsIn()).toEqual(['done']);
      await file.append(line('lost', 'success', 4));
    }
    expect(await readEarlier(path)).toMatchObject({
      manifest: { name: 'first' },
      finished: setOf('done', 'lost'),
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
    await using file = await ResultsFile.open(path, 'resume', NOTHING);
    await file.append(line('c', 'success'));
    expect(await idsIn()).toEqual(['b', 'a', 'c']);
  });

  test('keeps a last line without line feed and starts the next result below it', async () => {
    await writeFile(path, [line('a', 'success'), line('b', 'failure')].map((one) => JSON.stringify(one)).join('\n'));
    {
      await using file = await ResultsFile.open(path, 'resume', NOTHING);
      await file.append(line('c', 'success'));
    }
    expect(await idsIn()).toEqual(['a', 'b', 'c']);
    expect((await readEarlier(path)).finished).toEqual(setOf('a', 'b', 'c'));
  });

  test('removes every line that did not pass when only failed tasks run again', async () => {
    await writeFile(
      path,
      [line('a', 'success'), line('b', 'failure', 2)].map((one) => `${JSON.stringify(one)}\n`).join(''),
    );
    const earlier = await readEarlier(path, 'failed');
    expect(earlier).toMatchObject({ finished: setOf('a'), attempts: new Map([['b', 2]]) });
    await using _file = await ResultsFile.open(path, 'resume', manifest('n', earlier.attempts), 'failed');
    expect(await idsIn()).toEqual(['a']);
    // The driver of this run was killed: its tasks are those that have no line, but attempts.
    expect(await readEarlier(path, 'failed')).toMatchObject({ attempts: new Map([['b', 2]]) });
  });

  test('gives its whole lines to a reader while it grows', async () => {
    await using file = await ResultsFile.open(path, 'new', NOTHING);
    await file.append(line('a', 'success'));
    await writeFile(path, '{"id":"b","outc', { flag: 'a' });
    expect(await Array.fromAsync(readBatchResults(path))).toEqual([line('a', 'success')]);
  });

  test('names the file and the system error when a write fails', async () => {
    await using file = await ResultsFile.open('/dev/full', 'replace', NOTHING);
    await expect(file.append(line('a', 'success'))).rejects.toMatchObject({
      code: 'FILE_DENIED',
      message:
        '/dev/full on this machine cannot be used: ENOSPC: no space left on device, write. Make room there, and continue the batch with the same file.',
    });
  });
});
