import { join } from 'node:path';
import { callDocker, type DockerAnswer, type DockerEndpoint } from '../docker-endpoint.ts';
import { SetupError } from '../setup-error.ts';
import { waitForRedis } from './ping-redis.ts';
import { chooseRedisAddress, redisMemoryBytes, redisUrl, writeRedisConfig } from './redis-config.ts';

export type RedisContainerOptions = { endpoint: DockerEndpoint; image: string; folder: string; persistent: boolean };

const startTimeoutMs = 30_000;

/** Redis in a container, where no redis-server can be installed: published on loopback only, data in our folder. */
export class RedisContainer implements AsyncDisposable {
  readonly url: string;
  readonly #endpoint: DockerEndpoint;
  readonly #id: string;

  private constructor(endpoint: DockerEndpoint, id: string, url: string) {
    this.#endpoint = endpoint;
    this.#id = id;
    this.url = url;
  }

  static async start({ endpoint, image, folder, persistent }: RedisContainerOptions): Promise<RedisContainer> {
    await removeOrphan(endpoint, folder);
    const configPath = join(folder, 'redis.conf');
    const address = await chooseRedisAddress(configPath);
    const { port } = address;
    const maxMemoryBytes = redisMemoryBytes();
    // Inside its own network namespace it has to listen on every address; the published port is on loopback.
    await writeRedisConfig(configPath, {
      ...address,
      dataFolder: '/data',
      bind: '0.0.0.0',
      maxMemoryBytes,
      persistent,
    });
    const body = JSON.stringify({
      Image: image,
      Entrypoint: ['redis-server'],
      Cmd: ['/data/redis.conf'],
      // The configuration is readable by this user alone, so Redis runs as this user.
      User: `${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`,
      Labels: { [folderLabel]: folder },
      ExposedPorts: { [`${port}/tcp`]: {} },
      HostConfig: {
        Binds: [`${folder}:/data`],
        PortBindings: { [`${port}/tcp`]: [{ HostIp: '127.0.0.1', HostPort: String(port) }] },
        RestartPolicy: { Name: 'on-failure' },
      },
    });
    const created = await callDocker(endpoint, { method: 'POST', path: '/containers/create', body, contentType });
    const { Id: id } = expectStatus(created, 201, `creating a container of ${image}`) as { Id: string };
    const container = new RedisContainer(endpoint, id, redisUrl(address));
    try {
      const started = await callDocker(endpoint, { method: 'POST', path: `/containers/${id}/start` });
      expectStatus(started, 204, `starting a container of ${image}`);
      if (await waitForRedis(address, startTimeoutMs, () => false)) return container;
      throw new SetupError('Redis does not answer from its container.', `docker logs ${id.slice(0, 12)}`);
    } catch (error) {
      await container.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await callDocker(this.#endpoint, { method: 'POST', path: `/containers/${this.#id}/stop?t=10` });
    await callDocker(this.#endpoint, { method: 'DELETE', path: `/containers/${this.#id}?force=1&v=1` });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

const contentType = 'application/json';
const folderLabel = 'shellfleet.redis.folder';

// Two servers on one data folder would each overwrite what the other appends.
async function removeOrphan(endpoint: DockerEndpoint, folder: string): Promise<void> {
  const filters = encodeURIComponent(JSON.stringify({ label: [`${folderLabel}=${folder}`] }));
  const listed = await callDocker(endpoint, { path: `/containers/json?all=1&filters=${filters}` });
  for (const { Id: id } of expectStatus(listed, 200, 'listing containers') as { Id: string }[]) {
    await callDocker(endpoint, { method: 'POST', path: `/containers/${id}/stop?t=10` });
    await callDocker(endpoint, { method: 'DELETE', path: `/containers/${id}?force=1&v=1` });
  }
}

function expectStatus(answer: DockerAnswer, status: number, what: string): unknown {
  if (answer.status !== status) throw new Error(`${what}: status ${answer.status} ${answer.body.trim()}`);
  return answer.body === '' ? undefined : JSON.parse(answer.body);
}
