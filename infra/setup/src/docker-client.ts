import type { Docker } from '@shellfleet/vendor/dockerode';
import type { DockerEndpoint } from './docker-endpoint.ts';

/** Longest silence of the engine. Imports and builds of images can take minutes without output. */
const longestSilenceMs = 300_000;

/** Connects to the engine. A request without any reply for `silenceMs` fails. */
export async function connectDocker(endpoint: DockerEndpoint, silenceMs = longestSilenceMs): Promise<Docker> {
  // Loaded on use, because commands without an engine import set-up too.
  const { loadDockerode } = await import('@shellfleet/vendor/dockerode');
  const Client = loadDockerode();
  const { socketPath, host, port } = endpoint;
  return new Client({ ...(socketPath ? { socketPath } : { host, port, protocol: 'http' }), timeout: silenceMs });
}

/** Returns the engine's version, or undefined when no engine replies at this address. */
export async function readEngineVersion(endpoint: DockerEndpoint): Promise<string | undefined> {
  const docker = await connectDocker(endpoint, 5_000);
  try {
    return (await docker.version()).Version;
  } catch {
    // No engine answers at this address, or this user may not use its socket. The caller tries the next address.
    return undefined;
  }
}
