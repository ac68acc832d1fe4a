import { createReadStream } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { debianPackages, installPackages, type Report } from '../debian-packages.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { findProgram, runProgramOrThrow } from '../run-program.ts';
import { findDebianMirror } from './debian-mirror.ts';
import { importImage } from './image-store.ts';
import { recipeHash } from './recipe-hash.ts';

export type SessionRecipe = { image: string; packages: string[]; nodePath: string };

// Part of the hash: raise it when the build steps change but the packages do not.
const buildVersion = '2';

/** Reads the recipe of the local session image; its name changes with its content. */
export async function readSessionRecipe(root: string): Promise<SessionRecipe> {
  const text = await readFile(join(root, 'infra/images/session/packages.txt'), 'utf8');
  const packages = parsePackages(text);
  const parts = [buildVersion, ...packages, process.version, process.arch];
  return { image: `shellfleet/session:${recipeHash(parts)}`, packages, nodePath: process.execPath };
}

export function parsePackages(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter(Boolean);
}

/** Builds the session image from Debian's packages and the node that runs this. Needs root on a Debian. */
export async function buildSessionImage(
  { endpoint, report, signal }: { endpoint: DockerEndpoint; report: Report; signal?: AbortSignal | undefined },
  recipe: SessionRecipe,
): Promise<void> {
  if (!(await findProgram('mmdebstrap'))) await installPackages(debianPackages.imageTools, report);
  const folder = await mkdtemp(join(tmpdir(), 'shellfleet-image-'));
  try {
    signal?.throwIfAborted();
    const mirror = await findDebianMirror();
    report(`Building the session image from Debian's packages (${mirror.suite}; about a minute)`);
    const tarball = join(folder, 'root.tar');
    await runProgramOrThrow('mmdebstrap', mmdebstrapArgs(recipe, mirror, tarball), { timeoutMs: 15 * 60_000, signal });
    report('Loading the session image into the Docker engine');
    const changes = ['ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'CMD ["/bin/bash"]'];
    await importImage(endpoint, recipe.image, createReadStream(tarball), changes);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function mmdebstrapArgs(recipe: SessionRecipe, mirror: { url: string; suite: string }, tarball: string): string[] {
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
    '--customize-hook=echo "shellfleet:x:1000:1000::/workspace:/bin/bash" >> "$1/etc/passwd"',
    '--customize-hook=echo "shellfleet:x:1000:" >> "$1/etc/group"',
    // mmdebstrap copies these from this machine, and the image must not depend on the machine that built it.
    '--customize-hook=rm -f "$1/etc/resolv.conf" "$1/etc/hostname"',
    mirror.suite,
    tarball,
    mirror.url,
  ];
}
