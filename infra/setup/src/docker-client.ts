import type { Docker } from '@shellfleet/vendor/dockerode';
import type { DockerEndpoint } from './docker-endpoint.ts';

/** An import or a build of an image may take minutes without any output. */
const longestSilenceMs = 300_000;

/** A client of the engine. A request without any answer for `silenceMs` fails. */
export async function connectDocker(endpoint: DockerEndpoint, silenceMs = longestSilenceMs): Promise<Docker> {
  // Loaded when it is used: commands that need no engine import set-up too, and would start later.
  const { loadDockerode } = await import('@shellfleet/vendor/dockerode');
  const Client = loadDockerode();
  const { socketPath, host, port } = endpoint;
  return new Client({ ...(socketPath ? { socketPath } : { host, port, protocol: 'http' }), timeout: silenceMs });
}

/** The engine's version, or undefined when no engine answers at this address. */
export async function readEngineVersion(endpoint: DockerEndpoint): Promise<string | undefined> {
  const docker = await connectDocker(endpoint, 5_000);
  try {
    return (await docker.version()).Version;
  } catch {
    // No socket, no permission or no engine: in each case the caller tries the next address.
    return undefined;
  }
}
