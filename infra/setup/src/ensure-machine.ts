import { isPrebuilt } from '@shellfleet/keeper';
import { checkoutRoot } from './checkout.ts';
import type { Report } from './debian-packages.ts';
import { ensureBubblewrap } from './ensure-bubblewrap.ts';
import { type DockerEngine, ensureDocker } from './ensure-docker.ts';
import { ensureKeeper, ensureOwnKeeper } from './ensure-keeper.ts';
import { ensureTestPrograms } from './ensure-test-programs.ts';
import {
  ensureFullImage,
  ensureSessionImage,
  findFullImage,
  type SessionImageDeps,
} from './images/ensure-session-image.ts';
import { ensureTestImages, type TestImages } from './images/ensure-test-images.ts';
import { type ImageNames, LOADED_NAMES } from './images/session-recipe.ts';
import { removeStalePolicy } from './no-service-starts.ts';

/** Machine that is set up for workers. `sessionImage` is `slim`, or the operator's default. */
export type Machine = { engine: DockerEngine; sessionImage: string; imageNames: ImageNames };

/** Sets up a worker without containers, which needs only the keeper. */
export async function ensureMachineWithoutEngine(report: Report): Promise<void> {
  await removeStalePolicy();
  await ensureOwnKeeper(report);
}

/** Sets up all that a worker needs except Redis: an engine, a session image named by `imageNames`, the keeper. */
export async function ensureMachine(
  env: NodeJS.ProcessEnv,
  report: Report,
  { signal, imageNames = LOADED_NAMES }: { signal?: AbortSignal; imageNames?: ImageNames } = {},
): Promise<Machine> {
  await removeStalePolicy();
  const engine = await ensureDocker(env, report, signal);
  const deps = { ...imageDeps({ engine, imageNames }, env, report), signal };
  const sessionImage = ownDefaultImage(env) ?? (await ensureSessionImage(deps));
  signal?.throwIfAborted();
  await ensureKeeper({ ...deps, sessionImage });
  return { engine, sessionImage, imageNames };
}

/** Returns the operator's default image. If there is one, our images are needed only to compile the keeper. */
function ownDefaultImage({ SHELLFLEET_DEFAULT_IMAGE: image }: NodeJS.ProcessEnv): string | undefined {
  if (!image || (process.platform !== 'linux' && !isPrebuilt)) return undefined;
  const isOurs = ['full', 'slim'].some((variant) => image === variant || image === `shellfleet/session:${variant}`);
  return isOurs ? undefined : image;
}

/** Returns true if the machine has the current session image `full`. */
export async function hasFullSessionImage({ engine }: Machine): Promise<boolean> {
  return (await findFullImage({ endpoint: engine.endpoint, root: checkoutRoot })) !== undefined;
}

/** Makes the session image `full` on a machine that is set up, which takes minutes. Returns its name. */
export function ensureFullSessionImage(
  machine: Machine,
  env: NodeJS.ProcessEnv,
  report: Report,
  signal?: AbortSignal,
): Promise<string> {
  return ensureFullImage({ ...imageDeps(machine, env, report), signal });
}

/** Adds the images and programs of tests to a machine that is set up. */
export async function ensureMachineForTests(
  machine: Machine,
  env: NodeJS.ProcessEnv,
  report: Report,
): Promise<TestImages> {
  await ensureTestPrograms(report);
  await ensureBubblewrap(report);
  return ensureTestImages(imageDeps(machine, env, report), machine.sessionImage);
}

function imageDeps(
  { engine, imageNames }: Pick<Machine, 'engine' | 'imageNames'>,
  env: NodeJS.ProcessEnv,
  report: Report,
): SessionImageDeps {
  return { endpoint: engine.endpoint, env, root: checkoutRoot, names: imageNames, report };
}
