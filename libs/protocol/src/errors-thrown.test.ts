import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ERRORS } from './errors.ts';

/** Documented codes that nothing throws yet, each with the work that will throw it. */
const NOT_THROWN_YET: Record<string, string> = {};

const root = new URL('../../../', import.meta.url);

/** Returns the product's source without tests, without the list of codes, and without comparisons of codes. */
function readSources(): string {
  const paths = globSync(['{libs,apps}/*/src/**/*.ts', 'infra/setup/src/**/*.ts'], { cwd: root.pathname });
  return paths
    .filter((path) => !path.endsWith('.test.ts') && path !== 'libs/protocol/src/errors.ts')
    .map((path) => readFileSync(new URL(path, root), 'utf8'))
    .join('\n')
    .replace(/(===|!==|\bcase) *'[A-Z_]+'/g, '')
    .replace(/\[[^\]]*\]\.includes\(/g, '')
    .replace(/^(export )?type [^;]*;$/gm, '');
}

describe('the documented error codes', () => {
  test('are thrown somewhere, or listed as not thrown yet', () => {
    const sources = readSources();
    const unused = Object.keys(ERRORS).filter((code) => !sources.includes(`'${code}'`));
    expect(unused).toEqual(Object.keys(NOT_THROWN_YET));
  });
});
