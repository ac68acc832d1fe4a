import { join } from 'node:path';
import { canInstallPackages, type Report } from '../debian-packages.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { SetupError } from '../setup-error.ts';
import { makeUserStateDirectory } from '../state-directory.ts';
import { underLock } from '../under-lock.ts';
import { buildSessionImage, npmPrefix, userPath } from './build-session-image.ts';
import { buildImage, hasImage, tagImage } from './image-store.ts';
import { packDirectory } from './pack-context.ts';
import { pullReporting } from './pull-image.ts';
import { recipeHash } from './recipe-hash.ts';
import { type ImageNames, readPackages, readSessionRecipe, type SessionVariant } from './session-recipe.ts';

// IMAGE-1. An image gets its name when it is complete, so an interrupted build leaves no name.
// IMAGE-2. Processes of one user build an image one after another: the second process finds the first one's image.

/** Session image `slim` on machines that can pull images. */
const publicSessionImage = 'node:24-bookworm';

export type EnsureImageDeps = {
  endpoint: DockerEndpoint;
  env: NodeJS.ProcessEnv;
  root: string;
  report: Report;
  signal?: AbortSignal | undefined;
};

/** Dependencies of making session images. Workers find the images by `names`, whatever their content. */
export type SessionImageDeps = EnsureImageDeps & { names: ImageNames };
type Found = Pick<EnsureImageDeps, 'endpoint' | 'root'>;

/** Returns the name of an image `slim` that this engine has: the public one, else a local build. */
export async function ensureSessionImage(deps: SessionImageDeps): Promise<string> {
  const image = (await findSessionImage(deps)) ?? (await makeInTurn(deps, 'slim', () => makeSlim(deps)));
  await tagImage(deps.endpoint, image, deps.names.slim);
  return image;
}

/** Makes the image `full` on a machine that has `slim`, in the background because it takes minutes. */
export async function ensureFullImage(deps: SessionImageDeps): Promise<string> {
  const image = (await findFullImage(deps)) ?? (await makeInTurn(deps, 'full', () => makeFull(deps)));
  await tagImage(deps.endpoint, image, deps.names.full);
  return image;
}

/** Returns the image `slim` that the engine already has, if any. */
export async function findSessionImage(found: Found): Promise<string | undefined> {
  const recipe = await readSessionRecipe(found.root, 'slim');
  return findFirst(found, [publicSessionImage, recipe.image]);
}

/** Returns the image `full` that the engine already has, if any. */
export async function findFullImage(found: Found): Promise<string | undefined> {
  const recipe = await readSessionRecipe(found.root, 'full');
  return findFirst(found, [(await readDerived(found.root)).image, recipe.image]);
}

async function findFirst({ endpoint }: Found, images: string[]): Promise<string | undefined> {
  for (const image of images) if (await hasImage(endpoint, image)) return image;
  return undefined;
}

/** Makes an image while no other process of this user makes one (IMAGE-2). */
async function makeInTurn(deps: EnsureImageDeps, variant: SessionVariant, make: () => Promise<string>) {
  const lock = join(await makeUserStateDirectory(deps.env), `session-image-${variant}.lock`);
  const find = variant === 'slim' ? findSessionImage : findFullImage;
  return underLock(lock, deps.signal, async () => (await find(deps)) ?? make());
}

async function makeSlim(deps: EnsureImageDeps): Promise<string> {
  const refusal = await pullReporting(deps, publicSessionImage);
  if (refusal === undefined) return publicSessionImage;
  if (!(await canInstallPackages())) {
    throw new SetupError(
      `The session image ${publicSessionImage} cannot be pulled (${refusal}), and only root on a Debian can build one instead.`,
      `docker pull ${publicSessionImage}`,
    );
  }
  return buildFromPackages(deps, 'slim');
}

/** Builds `full` on the public image if the engine has that, else from this machine's Debian packages, like `slim`. */
async function makeFull(deps: EnsureImageDeps): Promise<string> {
  if (!(await hasImage(deps.endpoint, publicSessionImage))) return buildFromPackages(deps, 'full');
  return buildFullImage(deps, publicSessionImage);
}

/** Builds `full` on a base image that has Node and npm. */
export async function buildFullImage(deps: EnsureImageDeps, baseImage: string): Promise<string> {
  const { image, packages } = await readDerived(deps.root, baseImage);
  deps.report(`Building the session image full on top of ${baseImage} (a minute or two)`);
  const buildArgs = {
    BASE_IMAGE: baseImage,
    PACKAGES: packages.join(' '),
    USER_PATH: userPath,
    NPM_PREFIX: npmPrefix,
  };
  const dockerfile = 'full.Dockerfile';
  const context = packDirectory(join(deps.root, 'infra/images/session'));
  await buildImage(deps.endpoint, image, context, { dockerfile, buildArgs, signal: deps.signal });
  return image;
}

async function buildFromPackages(deps: EnsureImageDeps, variant: SessionVariant): Promise<string> {
  const recipe = await readSessionRecipe(deps.root, variant);
  await buildSessionImage(deps, recipe);
  return recipe.image;
}

async function readDerived(
  root: string,
  baseImage = publicSessionImage,
): Promise<{ image: string; packages: string[] }> {
  const packages = await readPackages(root, 'full');
  return { image: `shellfleet/session:${recipeHash([baseImage, '2', ...packages])}`, packages };
}
