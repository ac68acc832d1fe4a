import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../steps.ts';
import { bundleCli } from './bundle-cli.ts';
import { bundleVendor } from './bundle-vendor.ts';
import { type Manifest, placeOf, toPublished } from './published-manifest.ts';
import { shipDocs } from './ship-docs.ts';

const run = promisify(execFile);
const CLI = 'shellfleet';
/**
 * Packages that are published as bundles. Each function returns the dependencies that are not in its bundle and must
 * still be installed.
 */
const bundles: Record<string, typeof bundleCli> = { [CLI]: bundleCli, '@shellfleet/vendor': bundleVendor };

/** Package that is ready for a registry. */
export interface PackedPackage {
  name: string;
  version: string;
  /** Source of the tarball. */
  directory: string;
  tarball: string;
}

/** Compiles every package and adds files other than TypeScript: Lua scripts, recipes, the keeper. */
export async function buildPackages(): Promise<void> {
  await run('tsc', ['-b', 'tsconfig.build.json'], { cwd: root }).catch((error: { stdout?: string }) => {
    throw new Error(`The packages do not compile:\n${error.stdout}`);
  });
  await run('npm', ['run', 'assets', '--workspaces', '--if-present'], { cwd: root });
}

/** Packs every public package that was built. Returns them in the order of their dependencies. */
export async function packPackages(to: string): Promise<PackedPackage[]> {
  const packages = inOrder(await readPublicPackages());
  await rm(to, { recursive: true, force: true });
  const staged = await Promise.all(packages.map((one) => stage(one, join(to, 'staged', one.manifest.name))));
  await mkdir(join(to, 'tarballs'), { recursive: true });
  const args = ['pack', '--json', '--pack-destination', join(to, 'tarballs'), ...staged];
  const { stdout } = await run('npm', args, { cwd: to, maxBuffer: 16 * 2 ** 20 });
  const packed = Object.values(JSON.parse(stdout)) as { name: string; version: string; filename: string }[];
  return packages.map(({ manifest: { name, version } }, index) => {
    const { filename = '' } = packed.find((one) => one.name === name) ?? {};
    return { name, version, directory: staged[index] ?? '', tarball: join(to, 'tarballs', filename) };
  });
}

/**
 * Compiles the command line and bundles it for publication without packing it. `to` must be in the checkout, so
 * that the program finds other packages. Returns the program.
 */
export async function stageCli(to: string): Promise<string> {
  const directory = join(root, 'apps/producer');
  await run('tsc', ['-b', directory], { cwd: root });
  const manifest = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as Manifest;
  await rm(to, { recursive: true, force: true });
  return join(await stage({ directory, manifest }, to), 'dist/main.js');
}

interface PublicPackage {
  directory: string;
  manifest: Manifest;
}

async function readPublicPackages(): Promise<PublicPackage[]> {
  const { references } = JSON.parse(await readFile(join(root, 'tsconfig.build.json'), 'utf8')) as {
    references: { path: string }[];
  };
  return Promise.all(
    references.map(async ({ path }) => {
      const directory = join(root, path);
      return { directory, manifest: JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as Manifest };
    }),
  );
}

/** Sorts packages after their dependencies, so that an interrupted release leaves only installable packages. */
function inOrder(packages: readonly PublicPackage[]): PublicPackage[] {
  const ordered = new Set<PublicPackage>();
  const visit = (one: PublicPackage) => {
    const names = Object.keys(one.manifest.dependencies ?? {});
    for (const other of packages) if (names.includes(other.manifest.name) && !ordered.has(other)) visit(other);
    ordered.add(one);
  };
  for (const one of packages) visit(one);
  return [...ordered];
}

/** Copies the published files to a separate directory, because package.json in the checkout also serves development. */
async function stage({ directory, manifest }: PublicPackage, to: string): Promise<string> {
  await mkdir(to, { recursive: true });
  const published = toPublished(manifest);
  const bundle = bundles[manifest.name];
  if (bundle === undefined) await copyFiles(directory, manifest, to);
  else published.dependencies = await bundle(manifest, join(directory, 'dist'), to);
  if (manifest.name === CLI) {
    await shipDocs(join(to, 'docs'));
    await cp(join(root, 'infra/systemd'), join(to, 'systemd'), { recursive: true });
  }
  await cp(join(directory, 'README.md'), join(to, 'README.md'));
  await cp(join(root, 'LICENSE'), join(to, 'LICENSE'));
  const place = placeOf(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')), relative(root, directory));
  await writeFile(join(to, 'package.json'), `${JSON.stringify({ ...published, ...place }, null, 2)}\n`);
  return to;
}

async function copyFiles(directory: string, manifest: Manifest, to: string): Promise<void> {
  for (const name of new Set(manifest.files.map((pattern) => pattern.split('/')[0] ?? ''))) {
    await cp(join(directory, name), join(to, name), {
      recursive: true,
      filter: (path) => !isLeftover(path, directory),
    });
  }
}

/** Returns true for the compiled code of a module that no longer exists. */
function isLeftover(path: string, directory: string): boolean {
  const [, module] = /^dist\/(.*)\.(?:js|d\.ts)$/.exec(relative(directory, path)) ?? [];
  return module !== undefined && !['src', '.'].some((source) => existsSync(join(directory, source, `${module}.ts`)));
}
