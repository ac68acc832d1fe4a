import { cp, glob, readdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';
import { root } from '../steps.ts';
import type { Manifest } from './published-manifest.ts';

/** Packages that stay packages of their own: two that find files beside themselves and start processes, and one that few calls need. */
const external = ['@shellfleet/setup', '@shellfleet/worker', 'bullmq'];

/**
 * Writes the command line with what it imports as a few modules to `to`: a call then opens five files and not five hundred. A verb is a module
 * of its own, which is loaded when it is called. Returns the dependencies that are left.
 */
export async function bundleCli(manifest: Manifest, compiled: string, to: string): Promise<Record<string, string>> {
  const bundle = await rolldown({
    input: { main: join(compiled, 'main.js') },
    platform: 'node',
    plugins: [builtinsOnUse()],
    external: (id) => external.some((name) => id === name || id.startsWith(`${name}/`)),
    // Modules of the libraries do nothing but define.
    treeshake: { moduleSideEffects: (id) => !id.startsWith(join(root, 'libs')) },
    onLog: (level, log) => {
      if (level !== 'debug' && level !== 'info') throw new Error(`The bundle: ${log.message}`);
    },
  });
  // Names without a hash: what Node has cached of an older version is replaced, and does not pile up.
  const { output } = await bundle.write({ dir: join(to, 'dist'), format: 'esm', chunkFileNames: '[name].js' });
  await bundle.close();
  await copyScripts(join(to, 'dist'));
  const chunks = output.filter((part) => part.type === 'chunk');
  const folders = await packagesOf(chunks);
  await writeFile(join(to, 'THIRD-PARTY-NOTICES.txt'), await collectLicences(folders));
  return dependenciesLeft(manifest, folders);
}

/** Modules of Node that take milliseconds to load, and that packages in the bundle load without need; with what they use of them. */
const onUse: Record<string, string[]> = { tls: ['connect'], 'node:child_process': ['spawn'], assert: ['strictEqual'] };

function builtinsOnUse(): Plugin {
  return {
    name: 'builtins-on-use',
    transform: {
      filter: { id: /node_modules\/(ioredis|commander|redis-errors)\// },
      handler: (code) =>
        code.replace(
          /^const (\w+) = require\(['"](tls|node:child_process|assert)['"]\);?$/gm,
          (_all, name, builtin) => {
            const members = (onUse[builtin] ?? []).map(
              (member) => `get ${member}() { return require('${builtin}').${member}; }`,
            );
            return `const ${name} = Object.defineProperties((...args) => require('${builtin}')(...args), Object.getOwnPropertyDescriptors({ ${members} }));`;
          },
        ),
    },
  };
}

/** The mailbox reads its scripts beside the module that holds it. */
async function copyScripts(to: string): Promise<void> {
  const from = join(root, 'libs/mailbox/src');
  for await (const path of glob('**/*.lua', { cwd: from })) await cp(join(from, path), join(to, path));
}

/** The folders of the packages of which something is in the bundle. */
async function packagesOf(chunks: readonly OutputChunk[]): Promise<string[]> {
  const folders = new Set<string>();
  for (const id of chunks.flatMap(({ modules }) => Object.keys(modules))) {
    if (id.startsWith('/')) folders.add(await packageFolder(dirname(id)));
  }
  return [...folders].sort();
}

/** The nearest folder with a package.json that names a package: some packages have others, which only name the kind of their modules. */
async function packageFolder(folder: string): Promise<string> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '{}');
  return 'name' in JSON.parse(text) ? realpath(folder) : packageFolder(dirname(folder));
}

async function collectLicences(folders: readonly string[]): Promise<string> {
  const notices = folders.filter((folder) => folder.includes('/node_modules/')).map(toNotice);
  return `The command line contains these packages.\n\n${(await Promise.all(notices)).join('\n')}`;
}

async function toNotice(folder: string): Promise<string> {
  const { name, version, license } = await readManifest(folder);
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort();
  if (files.length === 0 || typeof license !== 'string') throw new Error(`${name} in the bundle has no licence.`);
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  return `${'='.repeat(80)}\n${name} ${version} (${license})\n\n${texts.join('\n').trim()}\n`;
}

/** What the bundle still imports, in the versions that the packages in it ask for. */
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

async function readManifest(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
}
