import type Docker from 'dockerode';

/** Starts a container of a row without Shellfleet. Its standard input stays open for a shell as its main process. */
export async function createBenchContainer(
  docker: Docker,
  image: string,
  command: string[],
): Promise<Docker.Container> {
  return docker.createContainer({
    Image: image,
    Entrypoint: command,
    Cmd: [],
    Labels: { 'shellfleet.bench': 'row' },
    OpenStdin: true,
    HostConfig: { NetworkMode: 'none', Init: true },
  });
}

export async function startBenchContainer(docker: Docker, image: string, command: string[]): Promise<Docker.Container> {
  const container = await createBenchContainer(docker, image, command);
  await container.start();
  return container;
}
