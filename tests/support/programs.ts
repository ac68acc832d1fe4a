import { copyFile, glob, mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';

/** Paths of the programs that tests start, some hundred times in a run. */
export interface Programs {
  worker: string;
  cli: string;
}

const entries = { worker: 'apps/worker/src/main.ts', cli: 'apps/producer/src/main.ts' };

/**
 * Bundles each program once for the run, because a start from source spends half of its time on finding about a
 * thousand modules. tests/e2e/up-down.test.ts starts the same programs from source, and tests/e2e/worker-image.test.ts
 * from the compiled packages. The caller removes `directory`.
 */
export async function bundlePrograms(): Promise<{ programs: Programs; directory: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-programs-'));
  return { programs: await bundleInto(directory, entries), directory };
}

/**
 * Bundles programs of this checkout. Returns their paths by name. Code and Lua scripts that change in the checkout
 * during a run do not change a bundle, because a caller and a script of two versions would not work together. Programs
 * that a bundled program starts are not bundled.
 */
export async function bundleInto<T extends Record<string, string>>(directory: string, input: T): Promise<T> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const bundle = await rolldown({
    cwd: root,
    input,
    platform: 'node',
    resolve: { conditionNames: ['@shellfleet/source', 'import', 'node', 'default'] },
    external: /\.node$/,
    plugins: [keepPlaces(directory)],
  });
  await bundle.write({ dir: directory, entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' });
  await bundle.close();
  return Object.fromEntries(Object.keys(input).map((name) => [name, join(directory, `${name}.mjs`)])) as T;
}

/** Lets a bundled module find the files beside its source file. Lua scripts are found in a copy. */
function keepPlaces(directory: string): Plugin {
  return {
    name: 'keep-places',
    async transform(code, id) {
      if (!/\bimport\.meta\b|\b__(dirname|filename)\b/.test(code)) return null;
      const place = (await copyScripts(dirname(id), join(directory, 'scripts'))) ? join(directory, 'scripts', id) : id;
      const places = {
        'import.meta.url': pathToFileURL(place).href,
        'import.meta.dirname': dirname(place),
        __dirname: dirname(place),
        __filename: place,
      };
      return Object.entries(places).reduce((text, [name, path]) => text.replaceAll(name, JSON.stringify(path)), code);
    },
  };
}

/** Copies the Lua scripts of a source directory and those below it. Returns whether there are any. */
async function copyScripts(source: string, target: string): Promise<boolean> {
  if (source.includes('node_modules')) return false;
  const paths = await Array.fromAsync(glob('**/*.lua', { cwd: source }));
  for (const path of paths) {
    const copy = join(target, source, path);
    await mkdir(dirname(copy), { recursive: true });
    await copyFile(join(source, path), copy);
  }
  return paths.length > 0;
}
