import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { lazyLocales } from './preload-zod.ts';

const zod = createRequire(import.meta.url).resolve('zod/package.json');
const index = join(dirname(zod), 'index.js');
const preload = fileURLToPath(new URL('./preload-zod.ts', import.meta.url));

/** Runs a program in a process that has loaded zod ahead, and returns what it prints as JSON. */
async function afterPreload(program: string): Promise<unknown> {
  const source = `
    import { preloadZod } from ${JSON.stringify(preload)};
    await preloadZod([${JSON.stringify(pathToFileURL(index).href)}]);
    const { z } = await import(${JSON.stringify(index)});
    console.log(JSON.stringify(${program}));`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--no-warnings',
    '--input-type=module',
    '-e',
    source,
  ]);
  return JSON.parse(stdout);
}

test('a zod that was loaded ahead has the exports, locales and messages of its own', async () => {
  const own = await import(pathToFileURL(index).href);
  expect(
    await afterPreload(`{
      exports: Object.keys(await import(${JSON.stringify(index)})),
      locales: Object.keys(z.locales),
      english: z.string().safeParse(1).error.message,
      german: (z.config(z.locales.de()), z.string().safeParse(1).error.message),
    }`),
  ).toEqual({
    exports: Object.keys(own),
    locales: Object.keys(own.z.locales),
    english: own.z.string().safeParse(1).error.message,
    german: expect.stringContaining('Ungültige Eingabe'),
  });
});

test('the list of locales of this zod has the form that is understood, and another is left as it is', async () => {
  expect(lazyLocales(await readFile(join(dirname(zod), 'v4/locales/index.js'), 'utf8'))).toBeDefined();
  expect(lazyLocales('export { default as de } from "./de.js";\nexport const more = 1;')).toBeUndefined();
});
