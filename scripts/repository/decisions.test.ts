import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from '../steps.ts';

const directory = join(root, 'docs/adr');
const files = (await readdir(directory)).filter((name) => name !== 'README.md').toSorted();
const index = await readFile(join(directory, 'README.md'), 'utf8');

describe('the index of decisions', () => {
  test('has one row for each decision, in order', () => {
    const rows = Array.from(index.matchAll(/^\| \[(\d+)\]\(([^)]+)\) \|/gm), ([, number, file]) => ({ number, file }));
    expect(rows).toEqual(files.map((file) => ({ number: String(Number(file.slice(0, 4))), file })));
  });

  test.each(files)('has in %s a number, a title and a status first', async (file) => {
    const [title, , status] = (await readFile(join(directory, file), 'utf8')).split('\n');
    expect(title).toMatch(new RegExp(`^# ${Number(file.slice(0, 4))}\\. \\S`));
    expect(status).toMatch(/^Status: \S/);
  });
});
