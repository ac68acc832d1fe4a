import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { bundlePage, PAGE_SCRIPT_PATH } from './bundle-page.ts';

describe('the script of the report of a batch', () => {
  test('is the output of npm run report-page', async () => {
    expect(await readFile(PAGE_SCRIPT_PATH, 'utf8'), 'run npm run report-page').toBe(await bundlePage());
  });
});
