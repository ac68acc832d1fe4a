import { keeperPath } from '@shellfleet/keeper';
import {
  buildFullImage,
  checkoutRoot,
  ensureApiImage,
  ensureFullSessionImage,
  ensureKeeperImage,
  ensureRedisImage,
  ensureWorkerImage,
  type Machine,
  type Report,
} from '@shellfleet/setup';
import type { ResolvedBases } from './resolve-bases.ts';

export const IMAGE_NAMES = ['worker', 'api', 'keeper', 'session', 'redis'] as const;
export type ImageName = (typeof IMAGE_NAMES)[number];

export interface MakeImagesOptions {
  machine: Machine;
  report: Report;
  only: readonly ImageName[];
  session: 'full' | 'slim';
  /** Base images by digest, for a release. Without them, the images are made of what this machine has. */
  bases?: ResolvedBases;
}

/** Makes the images for the architecture of this machine. Returns their names on its engine. */
export async function makeImages(options: MakeImagesOptions): Promise<[ImageName, string][]> {
  const made: [ImageName, string][] = [];
  for (const name of options.only) made.push([name, await makeImage(name, options)]);
  return made;
}

/** Makes one of the images. Returns its name on the engine. */
export async function makeImage(name: ImageName, options: Omit<MakeImagesOptions, 'only'>): Promise<string> {
  const { machine, report, session, bases } = options;
  const deps = { endpoint: machine.engine.endpoint, env: process.env, root: checkoutRoot, report };
  const makers: Record<ImageName, () => Promise<string>> = {
    worker: () => ensureWorkerImage(deps, bases?.worker ?? machine.sessionImage),
    api: () => ensureApiImage(deps, bases?.api ?? machine.sessionImage),
    keeper: async () => ensureKeeperImage(deps, await keeperPath(), process.arch === 'arm64' ? 'arm64' : 'x64'),
    session: async () => {
      if (bases !== undefined) return buildFullImage(deps, bases.session);
      return session === 'slim' ? machine.sessionImage : ensureFullSessionImage(machine, process.env, report);
    },
    redis: () => ensureRedisImage(deps),
  };
  return makers[name]();
}
