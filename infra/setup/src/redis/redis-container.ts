import { join } from 'node:path';
import type { Docker } from '@shellfleet/vendor/dockerode';
import { connectDocker } from '../docker-client.ts';
import type { DockerEndpoint } from '../docker-endpoint.ts';
import { SetupError } from '../setup-error.ts';
import { waitForRedis } from './ping-redis.ts';
import { chooseRedisAddress, redisMemoryBytes, redisUrl, writeRedisConfig } from './redis-config.ts';

export type RedisContainerOptions = { endpoint: DockerEndpoint; image: string; directory: string; persistent: boolean };

const startTimeoutMs = 30_000;

/** Redis in a container, where redis-server cannot be installed. Its port is published on loopback. */
export class RedisContainer implements AsyncDisposable {
  readonly url: string;
  readonly #container: Docker.Container;

  private constructor(container: Docker.Container, url: string) {
    this.#container = container;
    this.url = url;
  }

  static async start({ endpoint, image, directory, persistent }: RedisContainerOptions): Promise<RedisContainer> {
    const docker = await connectDocker(endpoint);
    await removeRedisContainer(endpoint, directory);
    const configPath = join(directory, 'redis.conf');
    const address = await chooseRedisAddress(configPath);
    const { port } = address;
    const maxMemoryBytes = redisMemoryBytes();
    // In its own network namespace Redis must listen on every address. The published port is on loopback.
    await writeRedisConfig(configPath, {
      ...address,
      dataDirectory: '/data',
      bind: '0.0.0.0',
      maxMemoryBytes,
      persistent,
    });
    const created = await docker.createContainer({
      Image: image,
      Entrypoint: ['redis-server'],
      Cmd: ['/data/redis.conf'],
      // Only this user can read the configuration, so Redis runs as this user.
      User: `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`,
      Labels: { [directoryLabel]: directory },
      ExposedPorts: { [`${port}/tcp`]: {} },
      HostConfig: {
        Binds: [`${directory}:/data`],
        PortBindings: { [`${port}/tcp`]: [{ HostIp: '127.0.0.1', HostPort: String(port) }] },
        RestartPolicy: { Name: 'on-failure' },
      },
    });
    const container = new RedisContainer(created, redisUrl(address));
    try {
      await created.start();
      if (await waitForRedis(address, startTimeoutMs, () => false)) return container;
      throw new SetupError('Redis does not answer from its container.', `docker logs ${created.id.slice(0, 12)}`);
    } catch (error) {
      await container.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return stopAndRemove(this.#container);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

const directoryLabel = 'shellfleet.redis.directory';

/** Removes the container of a killed supervisor. Two servers on one directory would overwrite each other's data. */
export async function removeRedisContainer(endpoint: DockerEndpoint, directory: string): Promise<void> {
  const docker = await connectDocker(endpoint);
  const filters = { label: [`${directoryLabel}=${directory}`] };
  for (const { Id } of await docker.listContainers({ all: true, filters }))
    await stopAndRemove(docker.getContainer(Id));
}

async function stopAndRemove(container: Docker.Container): Promise<void> {
  await container.stop({ t: 10 }).catch(() => {}); // the container may have ended already
  await container.remove({ force: true, v: true }).catch(() => {}); // the container may be removed already
}
