import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../steps.ts';
import { repositoryFiles } from './repository-files.ts';

// docs/behaviours.md lists behaviours of other systems. Tests name the rows that they demonstrate.

const id = /\bS[0-4]-\d{2}\b/g;
const [rows = '', unshown = ''] = (await readFile(join(root, 'docs/behaviours.md'), 'utf8')).split(
  '## Shown by no test',
);
const ids = Array.from(rows.matchAll(/^\| (S[0-4]-\d{2}) \|/gm), (match) => match[1] as string);

async function idsInTests(): Promise<Set<string>> {
  const tests = await repositoryFiles((path) => path.endsWith('.test.ts') || /^tests\/.*\.ts$/.test(path));
  return new Set(tests.filter(({ path }) => !path.startsWith('scripts/')).flatMap(({ text }) => text.match(id) ?? []));
}

test('each behaviour is listed once', () => {
  expect(ids).toEqual([...new Set(ids)].toSorted());
});

test('tests name no behaviour that is not listed', async () => {
  expect([...(await idsInTests())].filter((named) => !ids.includes(named))).toEqual([]);
});

test('the list of behaviours that no test shows is complete, and only gets shorter', async () => {
  const named = await idsInTests();
  const missing = ids.filter((row) => !named.has(row));
  // A row too many: a test names it now, so remove it from the list. A row too few: its last test was removed.
  expect(unshown.match(id) ?? []).toEqual(missing);
});
