import { chmod, copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EnsureImageDeps } from './ensure-session-image.ts';
import { buildImage, hasImage } from './image-store.ts';
import { packDirectory } from './pack-context.ts';
import { recipeHash } from './recipe-hash.ts';

/** Names of architectures, as Node and as images have them. */
const PLATFORMS = { x64: 'linux/amd64', arm64: 'linux/arm64' };
export type KeeperArch = keyof typeof PLATFORMS;

/** Returns the name of an image with the keeper alone, built from its program for an architecture if missing. */
export async function ensureKeeperImage(
  { endpoint, root, report }: EnsureImageDeps,
  program: string,
  arch: KeeperArch,
): Promise<string> {
  const dockerfile = join(root, 'infra/images/keeper/Dockerfile');
  const hash = recipeHash([arch, await readFile(dockerfile), await readFile(program)]);
  const image = `shellfleet/keeper:${hash}`;
  if (await hasImage(endpoint, image)) return image;
  report(`Building the keeper image for ${arch}`);
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-image-'));
  try {
    await copyFile(dockerfile, join(directory, 'Dockerfile'));
    await copyFile(program, join(directory, 'keeper'));
    // The user of the image is not its owner, whatever the umask of the checkout was.
    await chmod(join(directory, 'keeper'), 0o555);
    await buildImage(endpoint, image, packDirectory(directory), {
      dockerfile: 'Dockerfile',
      platform: PLATFORMS[arch],
    });
    return image;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
