import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canInstallPackages, debianPackages, installPackages } from '../debian-packages.ts';
import { findProgram, runProgramOrThrow } from '../run-program.ts';
import { SetupError } from '../setup-error.ts';
import type { EnsureImageDeps } from './ensure-session-image.ts';
import { buildImage, hasImage, importImage } from './image-store.ts';
import { packDirectory } from './pack-context.ts';
import { pullReporting } from './pull-image.ts';
import { recipeHash } from './recipe-hash.ts';

/** Images for edge cases: a minimal userland, only a shell, and no shell. */
export type TestImages = { busybox: string; dashOnly: string; noShell: string };

const publicBusyboxImage = 'busybox:1.37';

/** Builds the other images of tests. Each takes a few megabytes and, once, a few seconds. */
export async function ensureTestImages(deps: EnsureImageDeps, sessionImage: string): Promise<TestImages> {
  return {
    busybox: await ensureBusybox(deps),
    dashOnly: await ensureDerived(deps, sessionImage, 'dash-only'),
    noShell: await ensureDerived(deps, sessionImage, 'no-shell'),
  };
}

async function ensureDerived(deps: EnsureImageDeps, sessionImage: string, name: string): Promise<string> {
  const directory = join(deps.root, 'infra/images/test');
  const dockerfile = `${name}.Dockerfile`;
  const hash = recipeHash([sessionImage, await readFile(join(directory, dockerfile))]);
  const image = `shellfleet/test-${name}:${hash}`;
  if (await hasImage(deps.endpoint, image)) return image;
  deps.report(`Building the ${name} test image`);
  const buildArgs = { BASE_IMAGE: sessionImage };
  await buildImage(deps.endpoint, image, packDirectory(directory), { dockerfile, buildArgs });
  return image;
}

async function ensureBusybox(deps: EnsureImageDeps): Promise<string> {
  const { endpoint, report } = deps;
  const localImage = `shellfleet/test-busybox:${recipeHash(['1', process.arch])}`;
  for (const image of [publicBusyboxImage, localImage]) if (await hasImage(endpoint, image)) return image;
  if (!(await canInstallPackages())) {
    const refusal = await pullReporting(deps, publicBusyboxImage);
    if (refusal === undefined) return publicBusyboxImage;
    throw new SetupError(`${publicBusyboxImage} cannot be pulled: ${refusal}`, `docker pull ${publicBusyboxImage}`);
  }
  if (!(await findProgram('busybox'))) await installPackages(debianPackages.testImages, report);
  report('Building the busybox test image');
  await importBusybox(deps, localImage);
  return localImage;
}

async function importBusybox({ endpoint }: EnsureImageDeps, image: string): Promise<void> {
  const busybox = (await findProgram('busybox')) ?? 'busybox';
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-image-'));
  try {
    await chmod(directory, 0o755);
    for (const name of ['bin', 'tmp', 'etc']) await mkdir(join(directory, name));
    await chmod(join(directory, 'tmp'), 0o1777);
    await copyFile(busybox, join(directory, 'bin/busybox'));
    const applets = await runProgramOrThrow(busybox, ['--list']);
    for (const applet of applets.trim().split('\n')) {
      if (applet !== 'busybox') await symlink('busybox', join(directory, 'bin', applet));
    }
    await writeFile(
      join(directory, 'etc/passwd'),
      'root:x:0:0::/:/bin/sh\nshellfleet:x:1000:1000::/workspace:/bin/sh\n',
    );
    await importImage(endpoint, image, packDirectory(directory), ['CMD ["/bin/sh"]']);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
