import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';

const page = await readFile(new URL('../../../../docs/tools.md', import.meta.url), 'utf8');

describe('docs about tools', () => {
  // S4-02
  test('the page has the time and the memory of a process for each call', () => {
    const speed = page.split('**Speed.**')[1] ?? '';
    for (const process of ['after a pause', 'one call after another, two slots', 'without a prepared process'])
      expect(speed).toMatch(new RegExp(`^\\| ${process} \\| \\d+ ms \\| \\d+ ms \\|$`, 'm'));
    expect(page).toMatch(/\*\*A prepared process\*\*[^*]+takes \d+ MiB/);
  });
});
