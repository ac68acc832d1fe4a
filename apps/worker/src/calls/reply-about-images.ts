import { setTimeout as delay } from 'node:timers/promises';
import { type HostReply, type ImageRequest, ShellfleetError } from '@shellfleet/protocol';
import type { SandboxImages } from '../sandbox/sandbox.ts';

/** Less than the time in which a reply is expected. */
const WAIT_FOR_PULL_MS = 2_000;

/** Returns the reply to a request about the host's images. Throws SANDBOX_UNAVAILABLE on a host without containers. */
export async function replyAboutImages(
  request: ImageRequest,
  images: SandboxImages | undefined,
): Promise<HostReply<ImageRequest['type']>> {
  if (images === undefined)
    throw new ShellfleetError('SANDBOX_UNAVAILABLE', 'The host does not offer the policy docker, so it has no images.');
  switch (request.type) {
    case 'images':
      return images.list();
    case 'prune-images':
      return images.prune(request);
    case 'pull-image':
      return waitForPull(request.image, images);
  }
}

async function waitForPull(image: string, images: SandboxImages): Promise<HostReply<'pull-image'>> {
  const pulled = images.fetch(image).then((digest) => ({ state: 'present', digest }) as const);
  const late = new AbortController();
  const waited = delay(WAIT_FOR_PULL_MS, undefined, { signal: late.signal }).catch(() => undefined);
  try {
    const found = await Promise.race([pulled, waited]);
    if (found !== undefined) return found;
    // A failure is reported to the next request, which begins the pull again.
    pulled.catch(() => {});
    return { state: 'pulling', pull: images.progressOf(image) };
  } finally {
    late.abort();
  }
}
