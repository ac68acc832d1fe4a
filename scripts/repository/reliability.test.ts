import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PROMISES } from '../../tests/chaos/check/promises.ts';
import { root } from '../steps.ts';

// Each promise of docs/reliability.md has an existing test, and each injected fault a row of its table.

const page = await readFile(join(root, 'docs/reliability.md'), 'utf8');
const rows = page
  .slice(page.indexOf('| Event |'), page.indexOf('## The proof'))
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(1)
  .map((line) => line.slice(2, -2).split(' | '));
const pathsIn = (text: string): string[] =>
  Array.from(text.matchAll(/[\w./-]+\.test\.ts/g), ([path]) => (path.includes('/') ? path : `tests/chaos/${path}`));

describe('docs/reliability.md', () => {
  test.each(rows)('names existing tests for the promise about "%s"', (_event, _promise, _inCluster, tests = '') => {
    expect(pathsIn(tests)).not.toEqual([]);
  });

  test('names only existing tests', () => {
    expect(pathsIn(page).filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test('covers every injected fault in a row of the table', () => {
    const events = new Set(rows.map(([event]) => event));
    expect(Object.values(PROMISES).filter(({ event }) => !events.has(event))).toEqual([]);
  });
});
