import { connectDocker } from './docker-client.ts';
import type { DockerEndpoint } from './docker-endpoint.ts';

export type ContainerRun = { image: string; command: string[]; binds: string[] };

/** Runs a command in a new container with a network. Throws with the end of the log when the command fails. */
export async function runInContainer(endpoint: DockerEndpoint, { image, command, binds }: ContainerRun): Promise<void> {
  const docker = await connectDocker(endpoint);
  const container = await docker.createContainer({
    Image: image,
    Cmd: command,
    // With a terminal the log is plain text, without the frame headers that separate stdout from stderr.
    Tty: true,
    HostConfig: { Binds: binds },
  });
  try {
    await container.start();
    const { StatusCode: exitCode } = (await container.wait()) as { StatusCode: number };
    if (exitCode === 0) return;
    const log = await container.logs({ stdout: true, stderr: true, tail: 10, follow: false });
    throw new Error(`${command[0]} in ${image} ended with exit code ${exitCode}: ${log.toString().trim()}`);
  } finally {
    await container.remove({ force: true, v: true });
  }
}
