import { isPrebuilt } from '@shellfleet/keeper';
import { checkoutRoot, isCheckout } from './checkout.ts';
import { canInstallPackages, debianPackages } from './debian-packages.ts';
import { findDocker } from './ensure-docker.ts';
import { findFullImage, findSessionImage } from './images/ensure-session-image.ts';
import { findProgram, runProgram } from './run-program.ts';

/**
 * Part of the fleet on this machine. An optional part can be `absent`, which is no fault. A `missing` part has a fix.
 */
export type MachinePart = {
  name: string;
  state: 'present' | 'installable' | 'missing' | 'absent';
  detail: string;
  fix?: string;
};

/** Checks everything that set-up would ensure, without changing anything. */
export async function diagnose(env: NodeJS.ProcessEnv): Promise<MachinePart[]> {
  const canInstall = await canInstallPackages();
  const engine = await findDocker(env);
  return [
    checkNode(),
    await checkDocker(engine, env, canInstall),
    await checkSessionImage(engine),
    await checkFullImage(engine),
    await checkProgram('redis', 'redis-server', 'redis-server', canInstall, env.SHELLFLEET_REDIS_URL),
    await checkCompiler(canInstall),
  ];
}

type Engine = Awaited<ReturnType<typeof findDocker>>;

function checkNode(): MachinePart {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const detail = `${process.version} at ${process.execPath}`;
  if (isCheckout)
    return major >= 24 ? present('node', detail) : missing('node', `${detail} is older than 24`, 'npm ci');
  // The same version as in `engines` of the packages.
  const isServed = major > 22 || (major === 22 && minor >= 9);
  if (isServed) return present('node', detail);
  return missing('node', `${detail} is older than 22.9`, 'install Node 24');
}

async function checkDocker(engine: Engine, env: NodeJS.ProcessEnv, canInstall: boolean): Promise<MachinePart> {
  if (engine) return present('docker', `${engine.version} at ${engine.endpoint.dockerHost}`);
  const detail = `no engine answers${env.DOCKER_HOST ? ` at ${env.DOCKER_HOST}` : ''}`;
  if (env.DOCKER_HOST) return missing('docker', detail, 'start that engine, or unset DOCKER_HOST');
  if (process.platform === 'darwin') return missing('docker', detail, 'open -a Docker');
  const isRoot = process.getuid?.() === 0;
  const isInstalled = (await findProgram('dockerd')) !== undefined;
  if (isRoot && (isInstalled || canInstall)) return installable('docker', detail);
  return missing('docker', detail, isInstalled ? 'sudo systemctl start docker' : 'sudo apt-get install docker.io');
}

async function checkSessionImage(engine: Engine): Promise<MachinePart> {
  const name = 'session image';
  if (!engine) return missing(name, 'it needs a Docker engine', 'start the Docker engine first');
  const image = await findSessionImage({ endpoint: engine.endpoint, root: checkoutRoot });
  return image ? present(name, image) : installable(name, 'not there yet');
}

async function checkFullImage(engine: Engine): Promise<MachinePart> {
  const image = engine && (await findFullImage({ endpoint: engine.endpoint, root: checkoutRoot }));
  if (image) return present('image full', image);
  return { name: 'image full', state: 'absent', detail: 'not there yet: npm start makes it behind the fleet' };
}

async function checkCompiler(canInstall: boolean): Promise<MachinePart> {
  if (isPrebuilt) return present('keeper', 'its package holds it');
  if (process.platform !== 'linux') return present('compiler', 'the keeper is built in a container');
  const packages = debianPackages.compiler.join(' ');
  const compiler = await checkProgram('compiler', 'cc', packages, canInstall);
  if (compiler.state !== 'present') return compiler;
  const hasLibrary = (await runProgram('cc', ['-E', '-include', 'sodium.h', '-x', 'c', '/dev/null'])).exitCode === 0;
  if (hasLibrary) return compiler;
  const detail = 'cc finds no libsodium';
  return canInstall ? installable('compiler', detail) : missing('compiler', detail, installCommand(packages));
}

async function checkProgram(
  name: string,
  program: string,
  packages: string,
  canInstall: boolean,
  given?: string,
): Promise<MachinePart> {
  if (given) return present(name, 'the one that SHELLFLEET_REDIS_URL names');
  const path = await findProgram(program);
  if (path) return present(name, path);
  const detail = `${program} is not on PATH`;
  return canInstall ? installable(name, detail) : missing(name, detail, installCommand(packages));
}

function installCommand(packages: string): string {
  return process.platform === 'darwin'
    ? `brew install ${packages.replace(/-server$/, '')}`
    : `sudo apt-get install ${packages}`;
}

function present(name: string, detail: string): MachinePart {
  return { name, state: 'present', detail };
}

/** Returns a missing part that set-up can install. */
function installable(name: string, detail: string): MachinePart {
  return { name, state: 'installable', detail, fix: isCheckout ? 'npm start' : 'npx shellfleet up --detach' };
}

function missing(name: string, detail: string, fix: string): MachinePart {
  return { name, state: 'missing', detail, fix };
}
