import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { debianPackages, installPackages, type Report } from '../debian-packages.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { findProgram, runProgramOrThrow } from '../run-program.ts';
import { findDebianMirror } from './debian-mirror.ts';
import { importImage } from './image-store.ts';
import type { SessionRecipe } from './session-recipe.ts';

/** PATH with the programs of `pip install --user`, `pip install` without root and `npm install --global`. */
export const userPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/workspace/.local/bin';
export const npmPrefix = '/workspace/.local';
const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const timeoutMs = 15 * 60_000;

/**
 * Builds a session image from Debian's packages and this Node, with the lowest priority. Needs root on a Debian. The
 * engine has the image only when it is complete.
 */
export async function buildSessionImage(
  { endpoint, report, signal }: { endpoint: DockerEndpoint; report: Report; signal?: AbortSignal | undefined },
  recipe: SessionRecipe,
): Promise<void> {
  if (!(await findProgram('mmdebstrap'))) await installPackages(debianPackages.imageTools, report);
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-image-'));
  try {
    signal?.throwIfAborted();
    const mirror = await findDebianMirror();
    const minutes = recipe.variant === 'slim' ? 'about a minute' : 'a minute or two';
    report(`Building the session image ${recipe.variant} from Debian's packages (${mirror.suite}; ${minutes})`);
    const npm = recipe.npmVersion === undefined ? [] : await npmHooks(recipe.npmVersion, directory, signal);
    const tarball = join(directory, 'root.tar');
    const build = ['mmdebstrap', ...mmdebstrapArgs(recipe, mirror, npm, tarball)];
    const [file, ...args] = recipe.variant === 'full' ? ['nice', '-n', '19', ...build] : build;
    await runProgramOrThrow(file as string, args, { timeoutMs, signal });
    report(`Loading the session image ${recipe.variant} into the Docker engine`);
    await importImage(endpoint, recipe.image, createReadStream(tarball), settingsOf(recipe), signal);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function settingsOf({ variant }: SessionRecipe): string[] {
  const forUser = variant === 'full' ? [`ENV PATH=${userPath}`, `ENV NPM_CONFIG_PREFIX=${npmPrefix}`] : [];
  return [`ENV PATH=${systemPath}`, ...forUser, 'CMD ["/bin/bash"]'];
}

/** Installs npm from its registry, because Debian's npm is old and has four hundred packages. */
async function npmHooks(version: string, directory: string, signal: AbortSignal | undefined): Promise<string[]> {
  const npm = process.env.npm_execpath;
  const [file, ...before] = npm?.endsWith('.js') ? [process.execPath, npm] : ['npm'];
  const pack = ['pack', `npm@${version}`, '--pack-destination', directory, '--loglevel=error'];
  await runProgramOrThrow(file as string, [...before, ...pack], { cwd: directory, timeoutMs, signal });
  const modules = '$1/usr/local/lib/node_modules/npm';
  const unpack = `mkdir -p "${modules}" && tar -xzf ${directory}/npm-${version}.tgz -C "${modules}" --strip-components=1 --no-same-owner`;
  const link = (name: string) =>
    `ln -s ../lib/node_modules/npm/bin/${name}-cli.js "$1/usr/local/bin/${name}" && chmod 755 "${modules}/bin/${name}-cli.js"`;
  return [unpack, link('npm'), link('npx')].map((command) => `--customize-hook=${command}`);
}

function mmdebstrapArgs(
  recipe: SessionRecipe,
  mirror: { url: string; suite: string },
  npm: string[],
  tarball: string,
): string[] {
  const unread = ['/usr/share/man/*', '/usr/share/doc/*', '/usr/share/info/*', '/usr/share/locale/*'];
  return [
    '--quiet',
    '--variant=essential',
    `--include=${recipe.packages.join(',')}`,
    ...unread.map((path) => `--dpkgopt=path-exclude=${path}`),
    // Skips fsync: if the machine dies during the build, the incomplete file is discarded anyway.
    '--dpkgopt=force-unsafe-io',
    `--customize-hook=upload ${recipe.nodePath} /usr/local/bin/node`,
    '--customize-hook=chmod 755 "$1/usr/local/bin/node"',
    ...npm,
    '--customize-hook=echo "shellfleet:x:1000:1000::/workspace:/bin/bash" >> "$1/etc/passwd"',
    '--customize-hook=echo "shellfleet:x:1000:" >> "$1/etc/group"',
    // A session's home, which the engine would otherwise copy into each container.
    '--customize-hook=install -d -m 755 -o 1000 -g 1000 "$1/workspace"',
    // The sandbox is the user's own, so pip may install into it.
    '--customize-hook=rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
    // mmdebstrap copies these from this machine, on which the image must not depend.
    '--customize-hook=rm -f "$1/etc/resolv.conf" "$1/etc/hostname"',
    mirror.suite,
    tarball,
    mirror.url,
  ];
}
