import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { TestSpecification, Vitest } from 'vitest/node';
import { root } from '../steps.ts';
import { LongFilesFirst, longFiles } from './long-files-first.ts';

describe('the order of test files', () => {
  test('begins with the long files, longest first', async () => {
    const last = longFiles.at(-1) as string;
    const paths = ['tests/e2e/order.test.ts', last, 'tests/e2e/drain.test.ts', ...longFiles.slice(0, -1)];
    const project = { name: 'e2e', config: { sequence: { groupOrder: 1 } } };
    const files = paths.map((path) => ({ moduleId: join(root, path), project }) as unknown as TestSpecification);
    const vitest = { cache: { getTestSpecificationResult: () => ({ failed: false, duration: 1 }) } };
    const sorted = await new LongFilesFirst(vitest as unknown as Vitest).sort(files);
    expect(sorted.map(({ moduleId }) => moduleId.slice(root.length + 1))).toEqual([
      ...longFiles,
      'tests/e2e/order.test.ts',
      'tests/e2e/drain.test.ts',
    ]);
  });

  test.each(longFiles)('names no file that does not exist: %s', (path) => {
    expect(existsSync(join(root, path))).toBe(true);
  });
});
