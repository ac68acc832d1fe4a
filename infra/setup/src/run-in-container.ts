import { callDocker, type DockerEndpoint } from './docker-endpoint.ts';

export type ContainerRun = { image: string; command: string[]; binds: string[] };

/** Runs one command in a container of its own and removes it; throws with the command's last words when it fails. */
export async function runInContainer(endpoint: DockerEndpoint, { image, command, binds }: ContainerRun): Promise<void> {
  // With a TTY the log is one plain stream, without the framing that tells stdout from stderr.
  const body = JSON.stringify({
    Image: image,
    Cmd: command,
    Tty: true,
    HostConfig: { Binds: binds, NetworkMode: 'none' },
  });
  const contentType = 'application/json';
  const created = await callDocker(endpoint, { method: 'POST', path: '/containers/create', body, contentType });
  if (created.status !== 201) throw new Error(`cannot create a container of ${image}: ${created.body.trim()}`);
  const { Id: id } = JSON.parse(created.body) as { Id: string };
  try {
    const started = await callDocker(endpoint, { method: 'POST', path: `/containers/${id}/start` });
    if (started.status >= 400) throw new Error(`cannot start a container of ${image}: ${started.body.trim()}`);
    const waited = await callDocker(endpoint, { method: 'POST', path: `/containers/${id}/wait` });
    const { StatusCode: exitCode } = JSON.parse(waited.body) as { StatusCode: number };
    if (exitCode === 0) return;
    const log = await callDocker(endpoint, { path: `/containers/${id}/logs?stdout=1&stderr=1&tail=10` });
    throw new Error(`${command[0]} in ${image} ended with exit code ${exitCode}: ${log.body.trim()}`);
  } finally {
    await callDocker(endpoint, { method: 'DELETE', path: `/containers/${id}?force=1&v=1` });
  }
}
