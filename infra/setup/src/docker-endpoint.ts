/** Address of an engine: a socket, or a host and a port. `dockerHost` is that address in the form of DOCKER_HOST. */
export type DockerEndpoint = { dockerHost: string; socketPath?: string; host?: string; port?: number };

/** Parses the value of a DOCKER_HOST. Returns undefined for an unusable protocol such as ssh. */
export function parseDockerHost(dockerHost: string): DockerEndpoint | undefined {
  if (dockerHost.startsWith('unix://')) return { dockerHost, socketPath: dockerHost.slice('unix://'.length) };
  const tcp = /^(?:tcp|http):\/\/([^/:]+|\[[^\]]+\]):(\d+)\/?$/.exec(dockerHost);
  if (tcp) return { dockerHost, host: tcp[1]!.replace(/^\[|\]$/g, ''), port: Number(tcp[2]) };
  return undefined;
}

/** Returns the addresses at which an engine may listen, in the order in which they are tried. */
export function candidateDockerHosts(env: NodeJS.ProcessEnv, home: string): string[] {
  if (env.DOCKER_HOST) return [env.DOCKER_HOST];
  const sockets = [
    '/var/run/docker.sock',
    `${home}/.docker/run/docker.sock`, // Docker Desktop for Mac
    `${home}/.docker/desktop/docker.sock`, // Docker Desktop for Linux
    `${home}/.colima/default/docker.sock`,
  ];
  if (env.XDG_RUNTIME_DIR) sockets.push(`${env.XDG_RUNTIME_DIR}/docker.sock`);
  return sockets.map((path) => `unix://${path}`);
}
