import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { loadTools } from './load-tools.ts';

const module = fileURLToPath(new URL('../../../../tests/fixtures/tools/everyday.ts', import.meta.url));

describe('a loaded tool', () => {
  test('names the zod that its module imports', async () => {
    const [tool] = await loadTools([module], { PATH: process.env.PATH ?? '' }, 'test:load:', pino({ level: 'silent' }));
    const commonJs = createRequire(module).resolve('zod');
    expect(tool?.zod).toBe(pathToFileURL(commonJs.replace('index.cjs', 'index.js')).href);
  });
});
