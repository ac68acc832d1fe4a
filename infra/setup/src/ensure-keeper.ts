import { join } from 'node:path';
import { isPrebuilt, keeperPath } from '@shellfleet/keeper';
import { canInstallPackages, debianPackages, installPackages, type Report } from './debian-packages.ts';
import type { DockerEndpoint } from './docker-endpoint.ts';
import { runInContainer } from './run-in-container.ts';
import { findProgram } from './run-program.ts';
import { SetupError } from './setup-error.ts';

export type EnsureKeeperDeps = { endpoint: DockerEndpoint; sessionImage: string; root: string; report: Report };

/**
 * Builds the keeper for containers, unless the package has one that is up to date. Uses this machine's compiler on
 * Linux, and the compiler in the public session image on other systems.
 */
export async function ensureKeeper({ endpoint, sessionImage, root, report }: EnsureKeeperDeps): Promise<void> {
  if (isPrebuilt || process.platform === 'linux') return ensureOwnKeeper(report);
  report('Building the keeper in a container');
  const build = join('/checkout', 'libs/keeper/build.ts');
  const script = `import(${JSON.stringify(build)}).then(({ buildKeeper }) => buildKeeper())`;
  const command = ['node', '--conditions=@shellfleet/source', '--no-warnings', '-e', script];
  await runInContainer(endpoint, { image: sessionImage, command, binds: [`${root}:/checkout`] });
}

/** Builds the keeper for this machine with its own compiler, unless the package has one. */
export async function ensureOwnKeeper(report: Report): Promise<void> {
  if (!isPrebuilt) await ensureCompiler(report);
  try {
    await keeperPath();
  } catch (error) {
    if (!isPrebuilt) throw error;
    throw new SetupError((error as Error).message, 'use a machine with an x64 or arm64 processor');
  }
}

async function ensureCompiler(report: Report): Promise<void> {
  for (const compiler of ['cc', 'gcc']) if (await findProgram(compiler)) return;
  if (!(await canInstallPackages())) {
    throw new SetupError(
      'No C compiler is installed, and the keeper has to be built.',
      'sudo apt-get install gcc libc6-dev',
    );
  }
  await installPackages(debianPackages.compiler, report);
}
