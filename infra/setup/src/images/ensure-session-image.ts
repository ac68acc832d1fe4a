import { canInstallPackages, type Report } from '../debian-packages.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { SetupError } from '../setup-error.ts';
import { buildSessionImage, readSessionRecipe } from './build-session-image.ts';
import { hasImage, pullImage } from './image-store.ts';
import { pullFailedLately, rememberPullFailure } from './pull-memory.ts';

/** The default session image where images can be pulled. */
export const publicSessionImage = 'node:24-bookworm';

// A registry that is not there shows as silence or as an error at once; one that is there keeps talking.
const pullSilenceMs = 10_000;

export type EnsureImageDeps = { endpoint: DockerEndpoint; env: NodeJS.ProcessEnv; root: string; report: Report };

/** Answers with the name of a default session image that this engine has: the public one, or else a local build. */
export async function ensureSessionImage(deps: EnsureImageDeps): Promise<string> {
  const { endpoint, report } = deps;
  const recipe = await readSessionRecipe(deps.root);
  if (await hasImage(endpoint, publicSessionImage)) return publicSessionImage;
  if (await hasImage(endpoint, recipe.image)) return recipe.image;
  const refusal = await tryPull(publicSessionImage, deps);
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

/** Pulls, unless the last try failed lately. Answers with the reason when there is no image in the end. */
export async function tryPull(image: string, { endpoint, env, report }: EnsureImageDeps): Promise<string | undefined> {
  if (await pullFailedLately(env, image, Date.now())) return 'the last try failed less than an hour ago';
  report(`Pulling ${image}`);
  try {
    await pullImage(endpoint, image, pullSilenceMs);
    return undefined;
  } catch (error) {
    await rememberPullFailure(env, image, Date.now());
    const reason = error instanceof Error ? error.message : String(error);
    report(`${image} cannot be pulled here`);
    return reason;
  }
}
