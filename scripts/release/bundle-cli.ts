import { cp, glob, writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { type OutputChunk, type Plugin, type RolldownOutput, rolldown } from 'rolldown';
import { root } from '../steps.ts';
import { checkShortCall } from './check-short-call.ts';
import { lazySchemas } from './lazy-schemas.ts';
import { loadBuiltins } from './load-builtins.ts';
import type { Manifest } from './published-manifest.ts';
import { collectLicences, packagesOf, readManifest } from './third-party.ts';
import { toAscii } from './to-ascii.ts';

/** Packages outside the bundle: programs in their directories are started, and few calls need the vendored code. */
const external = ['@shellfleet/api', '@shellfleet/setup', '@shellfleet/vendor', '@shellfleet/worker'];

/** Modules that most verbs load. With all modules that they import, they become one module of the bundle. */
const common = ['producer/dist/start.js', 'cli/exec.js'];

/**
 * Writes the command line to `to` as one module per verb and a shared one, so that a call opens six files instead of a
 * thousand. Returns the remaining dependencies.
 */
export async function bundleCli(manifest: Manifest, compiled: string, to: string): Promise<Record<string, string>> {
  await using bundle = await rolldown({
    input: { main: join(compiled, 'main.js') },
    platform: 'node',
    plugins: [lazySchemas(), loadBuiltins(), quickCommander()],
    resolve: { alias: { 'supports-color': false } },
    external: (id) => external.some((name) => id === name || id.startsWith(`${name}/`)),
    // Unused modules of the libraries can go, because a library's module only defines things when it loads.
    treeshake: { moduleSideEffects: (id) => !id.startsWith(join(root, 'libs')) },
    onLog: (level, log) => {
      // Some dynamic imports help only a checkout. In the bundle their modules are combined.
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
      // Makes the bundle a third as large, because Node reads and hashes all of it at each call. Functions keep their
      // names, for stack traces.
      minify: {
        compress: { keepNames: { function: true, class: true } },
        mangle: { toplevel: false, keepNames: true },
        codegen: { removeWhitespace: true },
      },
      comments: { legal: true, jsdoc: false, annotation: false },
      codeSplitting: { groups: [{ name: 'common', test: (id) => together.has(id) }] },
    }),
  );
  checkShortCall(output);
  for (const { fileName, code } of output) await writeFile(join(to, 'dist', fileName), toAscii(code));
  await copyScripts(join(to, 'dist'));
  const directories = await packagesOf(output);
  await writeFile(join(to, 'THIRD-PARTY-NOTICES.txt'), await collectLicences('The command line', directories));
  return dependenciesLeft(manifest, directories);
}

/**
 * Makes ioredis load 8 ms faster. It adds 600 methods to a prototype, each with a new shape in V8, unless the object
 * has had a property deleted and so has a table of properties.
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

/** Returns the modules of the chunks that contain the named modules, and of all chunks that these import. */
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

/** Copies the Lua scripts of the libraries below the modules that define them, where `defineScript` finds them. */
async function copyScripts(to: string): Promise<void> {
  for await (const path of glob('libs/*/src/**/*.lua', { cwd: root })) {
    const place = join(to, ...path.split(sep).slice(3));
    await cp(join(root, path), place, { force: false, errorOnExist: true });
  }
}

/** Returns the packages that the bundle imports, in the versions that its packages require. */
async function dependenciesLeft(
  { dependencies }: Manifest,
  directories: readonly string[],
): Promise<Record<string, string>> {
  const inside = await Promise.all(directories.map(readManifest));
  const wanted: Record<string, string> = Object.assign({}, ...inside.map((one) => one.dependencies), dependencies);
  const left: Record<string, string> = {};
  for (const name of external) {
    const range = wanted[name];
    if (range === undefined) throw new Error(`No package in the bundle says which ${name} it needs.`);
    left[name] = range;
  }
  return left;
}
