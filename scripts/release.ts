// npm run release [-- --dry-run] [--registry PREFIX]: builds, packs, checks and publishes the public packages, and the
// images of a cluster to a registry if one is given. `npm run release:version` comes before it (CONTRIBUTING.md).
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { resolveBases } from './images/resolve-bases.ts';
import { findFaults } from './release/check-package.ts';
import { buildPackages, type PackedPackage, packPackages } from './release/pack-packages.ts';
import { root } from './steps.ts';

const run = promisify(execFile);

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { 'dry-run': { type: 'boolean', default: false }, registry: { type: 'string' } },
  });
  const { 'dry-run': isDry, registry } = values;
  const obstacles = await findObstacles();
  if (registry !== undefined) obstacles.push(...(await findUnresolved()));
  await buildPackages();
  for (const arch of ['x64', 'arm64']) {
    const hasKeeper = await readdir(join(root, 'libs/keeper/prebuilt', `linux-${arch}`)).catch(() => []);
    if (hasKeeper.length === 0) obstacles.push(`Install a C compiler for ${arch}: the keeper is missing for it.`);
  }
  if (obstacles.length > 0 && !isDry) throw new Error(obstacles.join('\n'));
  const packed = await packPackages(join(root, '.cache/release'));
  const faults = (await Promise.all(packed.map(describeFaults))).flat();
  if (faults.length > 0) throw new Error(faults.join('\n'));
  for (const one of packed) await publish(one, isDry);
  if (registry !== undefined && !isDry) {
    // The packages that make images are loaded from what was built above.
    const { publishImages } = await import('./release/publish-images.ts');
    await publishImages(registry.replace(/\/+$/, ''));
  }
  for (const obstacle of obstacles) console.log(`Before a release: ${obstacle}`);
}

/** Returns the steps that are missing before a release. */
async function findObstacles(): Promise<string[]> {
  const found: string[] = [];
  const { stdout: changes } = await run('git', ['status', '--porcelain'], { cwd: root });
  if (changes !== '') found.push('Commit the changes of this checkout: a release is what a commit says.');
  const waiting = (await readdir(join(root, '.changeset'))).filter((name) => name.endsWith('.md'));
  if (waiting.length > 0) found.push('Run npm run release:version, and commit: some changes are in no version yet.');
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { repository?: unknown };
  if (manifest.repository === undefined) found.push('Name the repository in package.json: provenance needs it.');
  return found;
}

/** Returns the base images that have no digest. */
async function findUnresolved(): Promise<string[]> {
  return resolveBases().then(
    () => [],
    (error: Error) => [error.message],
  );
}

async function describeFaults(one: PackedPackage): Promise<string[]> {
  return (await findFaults(one)).map((fault) => `${one.name}: ${fault}`);
}

/** Publishes a package unless the registry has it, so that an interrupted release can be repeated. */
async function publish({ name, version, tarball }: PackedPackage, isDry: boolean): Promise<void> {
  if (!isDry && (await isPublished(name, version))) return console.log(`${name}@${version} is published already`);
  await run('npm', ['publish', tarball, ...(isDry ? ['--dry-run'] : [])], { cwd: root });
  console.log(`${name}@${version} ${isDry ? 'could be published' : 'is published'}`);
}

async function isPublished(name: string, version: string): Promise<boolean> {
  try {
    const { stdout } = await run('npm', ['view', `${name}@${version}`, 'version'], { cwd: root });
    return stdout.trim() === version;
  } catch (error) {
    // The registry has no package of this name. Any other failure ends the release.
    if (String((error as { stderr?: string }).stderr).includes('E404')) return false;
    throw error;
  }
}

await main(process.argv.slice(2)).catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
