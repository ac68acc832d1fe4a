import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rowFaults } from '../mutants/row-faults.ts';
import { root } from '../steps.ts';
import { behaviourId, readBehavioursPage } from './behaviour-rows.ts';
import { repositoryFiles } from './repository-files.ts';

// docs/behaviours.md lists behaviours of other systems. Tests name the rows that they show, and the page names the
// tests.

const { rows, unshown } = await readBehavioursPage();
const ids = rows.map(({ id }) => id);

/** Directory of cases that a test file runs. */
const cases = { 'tests/support/shell-semantics/': 'tests/integration/shell-semantics.test.ts' };

async function testsNaming(): Promise<Map<string, string[]>> {
  const files = await repositoryFiles((path) => path.endsWith('.test.ts') || /^tests\/.*\.ts$/.test(path));
  const tests = new Map<string, Set<string>>();
  for (const { path, text } of files) {
    if (path.startsWith('scripts/')) continue;
    const test = Object.entries(cases).find(([directory]) => path.startsWith(directory))?.[1] ?? path;
    for (const id of text.match(behaviourId) ?? []) tests.set(id, (tests.get(id) ?? new Set()).add(test));
  }
  return new Map(Array.from(tests, ([id, paths]) => [id, [...paths].sort()]));
}

describe('docs/behaviours.md', () => {
  test('lists each behaviour once', () => {
    expect(ids).toEqual([...new Set(ids)].toSorted());
  });

  test('names for each row exactly the tests that name the row', async () => {
    const page = rows.filter(({ tests }) => tests.length > 0).map(({ id, tests }) => [id, tests.toSorted()] as const);
    expect(Object.fromEntries(page)).toEqual(Object.fromEntries(await testsNaming()));
  });

  test('lists every row that no test shows', () => {
    expect(unshown).toEqual(rows.filter(({ tests }) => tests.length === 0).map(({ id }) => id));
  });
});

describe('the faults of npm run mutants -- --rows', () => {
  test.each(rowFaults)('change for $row a text that stands once in $file', async ({ row, file, text, change }) => {
    const source = await readFile(join(root, file), 'utf8');
    expect(source.split(text).length - 1).toBe(1);
    expect(change).not.toBe(text);
    expect(rows.find(({ id }) => id === row)?.tests).not.toEqual([]);
  });
});
