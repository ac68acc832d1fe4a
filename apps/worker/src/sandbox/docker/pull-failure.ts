import { ShellfleetError } from '@shellfleet/protocol';

/** Meanings of the engine's error texts. The first match counts. */
const MEANINGS: [RegExp, (registry: string) => string][] = [
  [
    /dial tcp|lookup |no such host|connection refused|i\/o timeout|unreachable|TLS handshake|context deadline|EOF$/i,
    (registry) => `its registry ${registry} cannot be reached from this host`,
  ],
  [
    /toomanyrequests|rate limit/i,
    (registry) => `its registry ${registry} lets this host pull no more for a while: log the engine in, or wait`,
  ],
  [/no space left/i, () => 'the disk of the engine is full: remove images that nothing uses (`docker image prune`)'],
  [
    /access denied|unauthorized|authentication required|denied:|no basic auth/i,
    (registry) => `its registry ${registry} has no such image, or asks for a login that the engine of this host lacks`,
  ],
  [
    /manifest unknown|not found|no matching manifest|name unknown/i,
    (registry) => `its registry ${registry} has no image of this name and tag for this host`,
  ],
];

/**
 * Returns the error of a failed pull. Only its context has the engine's text. `ours`: why this worker ended the pull.
 */
export function pullFailed(image: string, registry: string, error: unknown, ours?: string): ShellfleetError {
  const engine = (error instanceof Error ? error.message : String(error)).trim();
  const meaning = MEANINGS.find(([pattern]) => pattern.test(engine))?.[1](registry);
  const why = ours ?? meaning ?? 'the engine refused to pull it, for a reason that is in the context of this error';
  return new ShellfleetError(
    'IMAGE_UNAVAILABLE',
    `The image ${image} is not on this host and could not be pulled: ${why}. Check its name, choose an image that the host has, or load it there with \`docker load\`.`,
    { image, registry, ...(ours === undefined ? { engine } : {}) },
  );
}
