import { type HostImage, imageNameSchema, parseOrThrow, type RunningPull, sessionKeys } from '@shellfleet/protocol';
import { refuseUnknownHost } from './known-host.ts';
import { type RequestContext, requestFromHost } from './request-from-host.ts';

export interface PullImageOptions {
  /** Is called about every 2 s while the host pulls. The progress is absent while the pull waits for its turn. */
  onProgress?: ((pull: RunningPull | undefined) => void) | undefined;
  /** Ends the wait. The pull goes on. */
  signal?: AbortSignal | undefined;
}

export interface PruneImagesOptions {
  /** Whether to list only what would be removed. */
  dryRun?: boolean | undefined;
}

interface ImagesContext extends RequestContext {
  readonly tenant: string;
}

/** Longest time in which a host removes its images. */
const PRUNE_WITHIN_MS = 300_000;

export async function listHostImages(context: ImagesContext, host: string): Promise<HostImage[]> {
  const keys = await keysOf(context, host);
  return requestFromHost(context, host, keys, { type: 'images' });
}

/** Lets a host pull an image, and waits for it. Returns the image's digest. */
export async function pullHostImage(
  context: ImagesContext,
  host: string,
  name: string,
  { onProgress, signal }: PullImageOptions = {},
): Promise<string> {
  const image = parseOrThrow(imageNameSchema, name, 'COMMAND_INVALID', 'The name of the image');
  const keys = await keysOf(context, host);
  for (;;) {
    signal?.throwIfAborted();
    const reply = await requestFromHost(context, host, keys, { type: 'pull-image', image }, { signal });
    if (reply.state === 'present') return reply.digest;
    onProgress?.(reply.pull);
  }
}

export async function pruneHostImages(
  context: ImagesContext,
  host: string,
  { dryRun = false }: PruneImagesOptions = {},
): Promise<HostImage[]> {
  const keys = await keysOf(context, host);
  return requestFromHost(context, host, keys, { type: 'prune-images', dryRun }, { timeoutMs: PRUNE_WITHIN_MS });
}

async function keysOf(context: ImagesContext, host: string) {
  await refuseUnknownHost(context, host);
  return sessionKeys(context.namespace, context.tenant, '');
}
