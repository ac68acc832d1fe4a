import { join } from 'node:path';
import { isPrebuilt, keeperPath, MissingBuildTool } from '@shellfleet/keeper';
import { canInstallPackages, debianPackages, installPackages, type Report } from './debian-packages.ts';
import type { DockerEndpoint } from './docker-endpoint.ts';
import { runInContainer } from './run-in-container.ts';
import { SetupError } from './setup-error.ts';

export type EnsureKeeperDeps = { endpoint: DockerEndpoint; sessionImage: string; root: string; report: Report };

// The public session image has a compiler, but not the library.
const BUILD_IN_IMAGE = `node "$@" 2>/dev/null || {
  apt-get update -qq && apt-get install -y -qq --no-install-recommends libsodium-dev && node "$@"
}`;

/**
 * Builds the keeper for containers, unless the package has one that is up to date. Uses this machine's compiler on
 * Linux, and the compiler in the public session image on other systems.
 */
export async function ensureKeeper({ endpoint, sessionImage, root, report }: EnsureKeeperDeps): Promise<void> {
  if (isPrebuilt || process.platform === 'linux') return ensureOwnKeeper(report);
  report('Building the keeper in a container');
  const build = join('/checkout', 'libs/keeper/build.ts');
  const script = `import(${JSON.stringify(build)}).then(({ buildKeeper }) => buildKeeper())`;
  const node = ['--conditions=@shellfleet/source', '--no-warnings', '-e', script];
  const command = ['sh', '-c', BUILD_IN_IMAGE, 'sh', ...node];
  await runInContainer(endpoint, { image: sessionImage, command, binds: [`${root}:/checkout`] });
}

/** Builds the keeper for this machine with its own compiler, unless the package has one. */
export async function ensureOwnKeeper(report: Report): Promise<void> {
  try {
    await keeperPath();
  } catch (error) {
    if (isPrebuilt) throw new SetupError((error as Error).message, 'use a machine with an x64 or arm64 processor');
    if (!(error instanceof MissingBuildTool)) throw error;
    if (!(await canInstallPackages()))
      throw new SetupError(error.message, `sudo apt-get install ${debianPackages.compiler.join(' ')}`);
    await installPackages(debianPackages.compiler, report);
    await keeperPath();
  }
}
