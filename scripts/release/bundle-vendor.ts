import { writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { type OutputChunk, type Plugin, rolldown } from 'rolldown';
import { root } from '../steps.ts';
import type { Manifest } from './published-manifest.ts';
import { collectLicences, packagesOf, readManifest } from './third-party.ts';
import { toAscii } from './to-ascii.ts';

// VENDOR-1. The bundle imports only modules of Node, and the API of OpenTelemetry, which all of a process share.
// VENDOR-2. No package in the bundle has an install script, as packages with native modules have.
// VENDOR-3. Every module in `replaced` occurs in the libraries. A library version that requires other modules stops the
// release.

/** Returns the code of a module that is only required where it is used, which never happens. */
const absent = (id: string) => `throw new Error('Shellfleet is published without ${id}.');`;
/** Returns the code of a module that is required at load time, and exports a function that is never called. */
const absentFunction = (id: string) => `module.exports = () => { ${absent(id)} };`;

/** Code that replaces modules, by the package that requires them. */
const replaced: Readonly<Record<string, Readonly<Record<string, (id: string) => string>>>> = {
  'docker-modem': {
    // Access to engines over SSH, by ssh2 with its native modules. Shellfleet uses only sockets and TCP.
    './ssh': absentFunction,
    // split-ca lacks the text of its licence, so it cannot be shipped. Node's TLS splits a file of certificates itself.
    'split-ca': () => "module.exports = (path) => require('node:fs').readFileSync(path);",
  },
  // Image builds with BuildKit, which need gRPC and protobuf. Shellfleet builds without BuildKit.
  dockerode: { './session': absentFunction, './buildkit': absent },
  // Drivers of databases. Shellfleet gives BullMQ a connection.
  bullmq: { ioredis: absent, pg: absent, '@valkey/valkey-glide': absent },
  // Native decoding, which BullMQ does not use. msgpackr also decodes in JavaScript.
  msgpackr: { 'msgpackr-extract': absent },
  // Colours in the output of the variable DEBUG.
  debug: { 'supports-color': absent },
};

const source = join(root, 'libs/vendor/src');
/** Replaces the checkout's own module that loads dockerode and omits the same modules. */
const dockerode = "import Docker from 'dockerode';\nexport const loadDockerode = () => Docker;";

/** Package that stays outside of the bundle. */
const API = '@opentelemetry/api';

/** Writes each library as one module to `to`. Returns the remaining dependencies: the API of OpenTelemetry. */
export async function bundleVendor(
  { name, dependencies }: Manifest,
  _compiled: string,
  to: string,
): Promise<Record<string, string>> {
  const left = new Set(
    Object.entries(replaced).flatMap(([from, ids]) => Object.keys(ids).map((id) => `${from}:${id}`)),
  );
  await using bundle = await rolldown({
    input: Object.fromEntries(
      ['bullmq', 'dockerode', 'opentelemetry'].map((library) => [library, join(source, `${library}.ts`)]),
    ),
    platform: 'node',
    external: API,
    plugins: [replaceModules(left)],
    onLog: (level, log) => {
      if (level === 'warn') throw new Error(`The bundle of ${name}: ${log.message}`);
    },
  });
  const { output } = await bundle.write({
    dir: join(to, 'dist'),
    format: 'esm',
    chunkFileNames: '[name].js',
    comments: { legal: true, jsdoc: false, annotation: false },
  });
  const chunks = output.filter((part) => part.type === 'chunk');
  for (const { fileName, code } of chunks) await writeFile(join(to, 'dist', fileName), toAscii(code));
  const directories = await packagesOf(chunks);
  checkImports(chunks);
  await Promise.all(directories.map(checkScripts));
  if (left.size > 0) throw new Error(`Nothing requires ${[...left].join(', ')} any more: see \`replaced\`.`);
  await writeFile(join(to, 'THIRD-PARTY-NOTICES.txt'), await collectLicences('This package', directories));
  return { [API]: dependencies?.[API] ?? '' };
}

/** Replaces the modules in `replaced`, and removes each replaced module from `left`. */
function replaceModules(left: Set<string>): Plugin {
  const prefix = '\0replaced:';
  return {
    name: 'replace-modules',
    resolveId(id, importer) {
      const [, from = ''] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(importer ?? '') ?? [];
      if (replaced[from]?.[id] === undefined) return null;
      left.delete(`${from}:${id}`);
      return `${prefix}${from}:${id}`;
    },
    load(name) {
      if (name === join(source, 'dockerode.ts')) return dockerode;
      if (!name.startsWith(prefix)) return null;
      const [from = '', id = ''] = name.slice(prefix.length).split(':');
      return { code: replaced[from]?.[id]?.(id) ?? '', moduleType: 'js' };
    },
  };
}

/** Throws if the bundle imports a package (VENDOR-1). */
function checkImports(chunks: readonly OutputChunk[]): void {
  const own = chunks.map(({ fileName }) => fileName);
  for (const { fileName, code, imports, dynamicImports } of chunks) {
    const required = [...code.matchAll(/\b(?:__)?require\("([^"]+)"\)/g)].map(([, id = '']) => id);
    const foreign = [...imports, ...dynamicImports, ...required].filter(
      (id) => id !== API && !own.includes(id) && !isBuiltin(id),
    );
    if (foreign.length > 0) throw new Error(`The bundle ${fileName} imports ${foreign.join(', ')}.`);
  }
}

/** Throws if a package in the bundle has an install script (VENDOR-2). */
async function checkScripts(directory: string): Promise<void> {
  const { name, scripts = {} } = (await readManifest(directory)) as Manifest & { scripts?: Record<string, string> };
  const found = ['preinstall', 'install', 'postinstall'].filter((script) => script in scripts);
  if (found.length > 0) throw new Error(`${name} in the bundle has the script ${found.join(', ')}.`);
}
