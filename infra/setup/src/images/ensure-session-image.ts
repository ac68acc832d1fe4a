import { canInstallPackages, type Report } from '../debian-packages.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { SetupError } from '../setup-error.ts';
import { buildSessionImage, readSessionRecipe } from './build-session-image.ts';
import { hasImage, tagImage } from './image-store.ts';
import { pullReporting } from './pull-image.ts';

/** The default session image on machines that can pull images. */
const publicSessionImage = 'node:24-bookworm';

export type EnsureImageDeps = {
  endpoint: DockerEndpoint;
  env: NodeJS.ProcessEnv;
  root: string;
  report: Report;
  signal?: AbortSignal | undefined;
};

/** The session image of a worker without a configured default image. */
const defaultName = 'shellfleet/session:latest';

/** Returns the name of a default session image that this engine has: the public one, else a local build. */
export async function ensureSessionImage(deps: EnsureImageDeps): Promise<string> {
  const image = await findOrMakeSessionImage(deps);
  await tagImage(deps.endpoint, image, defaultName);
  return image;
}

/** The session image that the engine has already, if any. Pulls and builds nothing. */
export async function findSessionImage({ endpoint, root }: Pick<EnsureImageDeps, 'endpoint' | 'root'>) {
  const recipe = await readSessionRecipe(root);
  for (const image of [publicSessionImage, recipe.image]) if (await hasImage(endpoint, image)) return image;
  return undefined;
}

async function findOrMakeSessionImage(deps: EnsureImageDeps): Promise<string> {
  const found = await findSessionImage(deps);
  if (found) return found;
  const refusal = await pullReporting(deps, publicSessionImage);
  if (refusal === undefined) return publicSessionImage;
  if (!(await canInstallPackages())) {
    throw new SetupError(
      `The session image ${publicSessionImage} cannot be pulled (${refusal}), and only root on a Debian can build one instead.`,
      `docker pull ${publicSessionImage}`,
    );
  }
  const recipe = await readSessionRecipe(deps.root);
  await buildSessionImage(deps, recipe);
  return recipe.image;
}
