import { GenericContainer, getContainerRuntimeClient, Wait } from 'testcontainers';
import { inject } from 'vitest';

/** A server that runs. */
export interface RunningRedis {
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGKILL and waits until the server is gone. */
  kill(): Promise<void>;
}

/**
 * Runs redis-server in a container that shares the network of this machine and has `directories` at their own paths.
 * Resolves when the server accepts connections. `kill` removes the container.
 */
export async function startRedisContainer(
  image: string,
  args: readonly string[],
  directories: readonly string[],
): Promise<RunningRedis> {
  process.env.DOCKER_HOST = inject('dockerHost');
  // The container that would remove leftovers needs an image that may be missing, so each test ends its containers
  // itself.
  process.env.TESTCONTAINERS_RYUK_DISABLED = 'true';
  const started = await new GenericContainer(image)
    .withEntrypoint(['redis-server'])
    .withCommand([...args])
    .withNetworkMode('host')
    .withUser(`${process.getuid?.()}:${process.getgid?.()}`)
    .withBindMounts(directories.map((path) => ({ source: path, target: path })))
    .withWaitStrategy(Wait.forLogMessage(/Ready to accept connections|Sentinel ID/))
    .start();
  const client = await getContainerRuntimeClient();
  const container = client.container.getById(started.getId());
  const notRunning = 409;
  const sendSignal = (signal: NodeJS.Signals) =>
    container.kill({ signal }).catch((error: { statusCode?: number }) => {
      if (error.statusCode !== notRunning) throw error;
    });
  const end = async () => {
    await sendSignal('SIGKILL');
    await container.wait();
    await container.remove();
  };
  let ended: Promise<void> | undefined;
  return {
    signal: (signal) => void sendSignal(signal),
    kill() {
      ended ??= end();
      return ended;
    },
  };
}
