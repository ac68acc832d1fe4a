export { checkoutRoot, isCheckout } from './checkout.ts';
export type { Report } from './debian-packages.ts';
export { diagnose, type MachinePart } from './diagnose.ts';
export { ensureBubblewrap } from './ensure-bubblewrap.ts';
export { type DockerEngine, ensureDocker, findDocker, stopDocker } from './ensure-docker.ts';
export {
  ensureFullSessionImage,
  ensureMachine,
  ensureMachineForTests,
  ensureMachineWithoutEngine,
  hasFullSessionImage,
  type Machine,
} from './ensure-machine.ts';
export { type EnsureRedisOptions, ensureRedis, type Redis, stopRedis } from './ensure-redis.ts';
export { ensureApiImage, ensureWorkerImage } from './images/ensure-app-image.ts';
export { ensureKeeperImage } from './images/ensure-keeper-image.ts';
export { ensureRedisImage } from './images/ensure-redis-image.ts';
export { buildFullImage } from './images/ensure-session-image.ts';
export type { TestImages } from './images/ensure-test-images.ts';
export { imageId, saveImage, tagImage } from './images/image-store.ts';
export type { ImageNames } from './images/session-recipe.ts';
export { type ImageUses, listImagesOf } from './leftovers/find-images.ts';
export { findLeftovers, type Leftover, removeLeftover } from './leftovers/find-leftovers.ts';
export { isHostLocked } from './leftovers/owner-of.ts';
export { endProcess, isRunning, type RecordedProcess, readProcess, recordProcess } from './live-process.ts';
export { SetupError } from './setup-error.ts';
export { makeStateDirectory, makeUserStateDirectory, stateDirectory, userStateDirectory } from './state-directory.ts';
export { workerNodeFlags } from './worker-node-flags.ts';
