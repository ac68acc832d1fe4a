import { cp, glob, writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { type OutputChunk, type Plugin, type RolldownOutput, rolldown } from 'rolldown';
import { root } from '../steps.ts';
import { lazySchemas } from './lazy-schemas.ts';
import { loadBuiltins } from './load-builtins.ts';
import type { Manifest } from './published-manifest.ts';
import { collectLicences, packagesOf, readManifest } from './third-party.ts';
import { toAscii } from './to-ascii.ts';

/** Packages outside the bundle: two start programs that lie beside them, and few calls need the third. */
const external = ['@shellfleet/setup', '@shellfleet/vendor', '@shellfleet/worker'];

/** Modules that every verb or most verbs load. They and what they import become one module of the bundle. */
const common = ['producer/dist/start.js', 'cli/exec.js', 'client/dist/index.js'];

/**
 * Writes the command line and what it imports to `to`, as one module for each verb and one that they share. A call then
 * opens six files instead of a thousand. Returns the dependencies that are left.
 */
export async function bundleCli(manifest: Manifest, compiled: string, to: string): Promise<Record<string, string>> {
  await using bundle = await rolldown({
    input: { main: join(compiled, 'main.js') },
    platform: 'node',
    plugins: [lazySchemas(), loadBuiltins(), quickCommander()],
    resolve: { alias: { 'supports-color': false } },
    external: (id) => external.some((name) => id === name || id.startsWith(`${name}/`)),
    // Modules of the libraries do nothing but define.
    treeshake: { moduleSideEffects: (id) => !id.startsWith(join(root, 'libs')) },
    onLog: (level, log) => {
      // Of the imports on use, some serve the checkout alone: here it is in one module with what uses it.
      if (level === 'warn' && log.code !== 'INEFFECTIVE_DYNAMIC_IMPORT') throw new Error(`The bundle: ${log.message}`);
    },
  });
  const apart = chunksOf(await bundle.generate({ format: 'esm' }));
  const together = modulesFor(apart, common);
  const output = chunksOf(
    await bundle.write({
      dir: join(to, 'dist'),
      format: 'esm',
      // Names without a hash, so that Node's cache replaces the code of an older version.
      chunkFileNames: '[name].js',
      // A third of the bytes, which Node reads and hashes at every
      // call. The names of functions stay, for the stack of a bug.
      minify: {
        compress: { keepNames: { function: true, class: true } },
        mangle: { toplevel: false, keepNames: true },
        codegen: { removeWhitespace: true },
      },
      comments: { legal: true, jsdoc: false, annotation: false },
      codeSplitting: { groups: [{ name: 'common', test: (id) => together.has(id) }] },
    }),
  );
  for (const { fileName, code } of output) await writeFile(join(to, 'dist', fileName), toAscii(code));
  await copyScripts(join(to, 'dist'));
  const folders = await packagesOf(output);
  await writeFile(join(to, 'THIRD-PARTY-NOTICES.txt'), await collectLicences('The command line', folders));
  return dependenciesLeft(manifest, folders);
}

/**
 * Makes ioredis load 8 ms faster. It adds 600 methods to a prototype one by one, and V8 makes a new shape for each. An
 * object that had a property deleted has a table of properties instead.
 */
function quickCommander(): Plugin {
  const from = 'commands.forEach(function';
  return {
    name: 'quick-commander',
    transform: {
      filter: { id: /ioredis\/built\/utils\/Commander\.js$/ },
      handler: (code) => {
        if (!code.includes(from)) throw new Error('ioredis makes its methods in another way: see quickCommander.');
        return code.replace(from, `Commander.prototype.none = 0; delete Commander.prototype.none;\n${from}`);
      },
    },
  };
}

const chunksOf = ({ output }: RolldownOutput): OutputChunk[] => output.filter((part) => part.type === 'chunk');

/** Returns the modules of the chunks that have the named modules, and of the chunks that these import. */
function modulesFor(chunks: readonly OutputChunk[], names: readonly string[]): ReadonlySet<string> {
  const wanted = new Set<OutputChunk>();
  const want = (chunk: OutputChunk) => {
    if (chunk.isEntry || wanted.has(chunk)) return;
    wanted.add(chunk);
    for (const other of chunks) if (chunk.imports.includes(other.fileName)) want(other);
  };
  for (const name of names) {
    const holder = chunks.find(({ moduleIds }) => moduleIds.some((id) => id.endsWith(`/${name}`)));
    if (holder === undefined) throw new Error(`The bundle has no ${name}.`);
    want(holder);
  }
  return new Set([...wanted].flatMap(({ moduleIds }) => moduleIds));
}

/**
 * Copies the Lua scripts of the libraries to where `defineScript`
 * finds them: below the folder of the module that defines them.
 */
async function copyScripts(to: string): Promise<void> {
  for await (const path of glob('libs/*/src/**/*.lua', { cwd: root })) {
    const place = join(to, ...path.split(sep).slice(3));
    await cp(join(root, path), place, { force: false, errorOnExist: true });
  }
}

/** Returns the packages that the bundle imports, in the versions that the packages in it ask for. */
async function dependenciesLeft(
  { dependencies }: Manifest,
  folders: readonly string[],
): Promise<Record<string, string>> {
  const inside = await Promise.all(folders.map(readManifest));
  const wanted: Record<string, string> = Object.assign({}, ...inside.map((one) => one.dependencies), dependencies);
  const left: Record<string, string> = {};
  for (const name of external) {
    const range = wanted[name];
    if (range === undefined) throw new Error(`No package in the bundle says which ${name} it needs.`);
    left[name] = range;
  }
  return left;
}
