import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refuseReport } from './batch-report-flags.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-report-flags-'));
  const ended = { sessionId: '', results: [], attempts: 1, startedAt: '', durationMs: 1, outputBytes: 0 };
  const result = { id: 'a', task: 'a', repeat: 1, passed: true, outcome: 'success', ...ended };
  await writeFile(join(directory, 'results'), `${JSON.stringify(result)}\n`);
  await writeFile(join(directory, 'tasks'), '{"id":"a","script":"true"}\n');
  await symlink('results', join(directory, 'link'));
  await mkdir(join(directory, 'sub'));
});
afterAll(() => rm(directory, { recursive: true }));

const flags = (given: Record<string, string>) =>
  Object.fromEntries(Object.entries(given).map(([flag, name]) => [flag, join(directory, name)])) as { out: string };

describe('the files that a batch writes at its end', () => {
  test.each<[string, Record<string, string>, RegExp]>([
    ['a report that is the results', { out: 'new', report: 'new' }, /--report and --out are the same file/],
    ['a report that is the manifest', { out: 'new', report: 'new.batch' }, /--report and the manifest of --out are/],
    ['a report that is the file of JUnit', { out: 'new', junit: 'x', report: 'sub/../x' }, /--report and --junit are/],
    ['a comparison with itself', { out: 'link', report: 'x', compare: 'results' }, /--compare and --out are the same/],
    ['a report over the earlier run', { out: 'new', report: 'link', compare: 'results' }, /--compare and --report are/],
    ['a report in no directory', { out: 'new', report: 'none/x' }, /none\/x, which --report names, cannot be written/],
    ['a report that is a directory', { out: 'new', report: 'sub' }, /sub, which --report names, is a directory/],
    ['results of JUnit in no directory', { out: 'new', junit: 'none/x' }, /none\/x, which --junit names, cannot be/],
    ['an earlier run without results', { out: 'new', report: 'x', compare: 'tasks' }, /has no results of a batch/],
    ['an earlier run that is missing', { out: 'new', report: 'x', compare: 'none' }, /is not a file/],
    ['an earlier run that no report shows', { out: 'new', compare: 'results' }, /--compare needs --report/],
  ])('are refused before it begins: %s', async (_what, given, message) => {
    await expect(refuseReport(flags(given))).rejects.toMatchObject({ code: 'COMMAND_INVALID', message });
  });

  test('may be different files, or devices', async () => {
    await refuseReport(flags({ out: 'new', junit: 'xml', report: 'html', compare: 'results' }));
    await refuseReport({ out: '/dev/null', report: '/dev/null' });
  });
});
