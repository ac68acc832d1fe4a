import { createRequire } from 'node:module';
import type Docker from 'dockerode';

export type { ContainerCreateOptions, default as Docker, HostConfig, NetworkInspectInfo } from 'dockerode';

const require = createRequire(import.meta.url);

/**
 * Loads dockerode without its SSH client and gRPC, which are two thirds of its modules and 18 MB of a worker's memory.
 * They serve engines behind SSH and builds with BuildKit. Shellfleet connects to a socket or a TCP port, and builds
 * without BuildKit. The published package contains a bundle that lacks both (scripts/release/bundle-vendor.ts).
 */
export function loadDockerode(): typeof Docker {
  const dockerode = require.resolve('dockerode');
  const modem = createRequire(dockerode).resolve('docker-modem');
  leaveOut(createRequire(modem).resolve('./ssh'));
  leaveOut(createRequire(dockerode).resolve('./session'));
  return require(dockerode) as typeof Docker;
}

/** Both modules export one function. Where it is called all the same, the module is loaded. */
function leaveOut(path: string): void {
  const { cache } = require;
  if (cache[path] !== undefined) return;
  const load = (): ((...args: unknown[]) => unknown) => {
    if (cache[path] === placeholder) delete cache[path];
    return require(path);
  };
  const placeholder = { exports: (...args: unknown[]) => load()(...args) } as NodeJS.Module;
  cache[path] = placeholder;
}
