import { canInstallPackages, type Report } from '../debian-packages.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { SetupError } from '../setup-error.ts';
import { buildSessionImage, readSessionRecipe } from './build-session-image.ts';
import { hasImage } from './image-store.ts';
import { pullReporting } from './pull-image.ts';

/** The default session image where images can be pulled. */
const publicSessionImage = 'node:24-bookworm';

export type EnsureImageDeps = { endpoint: DockerEndpoint; env: NodeJS.ProcessEnv; root: string; report: Report };

/** Answers with the name of a default session image that this engine has: the public one, or else a local build. */
export async function ensureSessionImage(deps: EnsureImageDeps): Promise<string> {
  const { endpoint, report } = deps;
  const recipe = await readSessionRecipe(deps.root);
  if (await hasImage(endpoint, publicSessionImage)) return publicSessionImage;
  if (await hasImage(endpoint, recipe.image)) return recipe.image;
  const refusal = await pullReporting(deps, publicSessionImage);
  if (refusal === undefined) return publicSessionImage;
  if (!(await canInstallPackages())) {
    throw new SetupError(
      `The session image ${publicSessionImage} cannot be pulled (${refusal}), and only root on a Debian can build one instead.`,
      `docker pull ${publicSessionImage}`,
    );
  }
  await buildSessionImage(endpoint, recipe, report);
  return recipe.image;
}
