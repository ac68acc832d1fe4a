import { canInstallPackages, debianPackages, installPackages, type Report } from './debian-packages.ts';
import { findDocker } from './ensure-docker.ts';
import { hasImage } from './images/image-store.ts';
import { pullReporting } from './images/pull-image.ts';
import { RedisContainer, removeRedisContainer } from './redis/redis-container.ts';
import { RedisServer, stopRedisServer } from './redis/redis-server.ts';
import { findProgram } from './run-program.ts';
import { SetupError } from './setup-error.ts';

export type EnsureRedisOptions = {
  env: NodeJS.ProcessEnv;
  /** Directory of the embedded Redis's configuration, data and log, which only this user can read. */
  directory: string;
  /** True if data outlives the server, as for a fleet but not for a test run. */
  persistent: boolean;
  report: Report;
  signal?: AbortSignal;
};

/** Redis that can be used until close(). A Redis that ensureRedis has started is stopped by close(). */
export type Redis = AsyncDisposable & { readonly url: string; close(): Promise<void> };

export const publicRedisImage = 'redis:7-bookworm';

/** Returns the given Redis, or starts one: a child process if redis-server is or can be installed, else a container. */
export async function ensureRedis(options: EnsureRedisOptions): Promise<Redis> {
  const { env, directory, persistent, report } = options;
  if (env.SHELLFLEET_REDIS_URL) return givenRedis(env.SHELLFLEET_REDIS_URL);
  const program = await findRedisServer(report);
  options.signal?.throwIfAborted();
  if (program) {
    report('Starting Redis');
    return RedisServer.start({ program, directory, persistent, report });
  }
  return startContainer(options);
}

/** Ends the Redis that a dead supervisor has left on a directory: a process or a container. */
export async function stopRedis(directory: string, env: NodeJS.ProcessEnv): Promise<void> {
  await stopRedisServer(directory);
  const engine = await findDocker(env);
  if (engine) await removeRedisContainer(engine.endpoint, directory);
}

function givenRedis(url: string): Redis {
  const close = async (): Promise<void> => {};
  return { url, close, [Symbol.asyncDispose]: close };
}

export async function findRedisServer(report: Report): Promise<string | undefined> {
  const found = await findProgram('redis-server');
  if (found || !(await canInstallPackages())) return found;
  await installPackages(debianPackages.redis, report);
  return findProgram('redis-server');
}

async function startContainer({ env, directory, persistent, report, signal }: EnsureRedisOptions): Promise<Redis> {
  const engine = await findDocker(env);
  if (!engine) throw noRedis('no Docker engine answers to run one in a container');
  const { endpoint } = engine;
  if (!(await hasImage(endpoint, publicRedisImage))) {
    const refusal = await pullReporting({ endpoint, env, report, signal }, publicRedisImage);
    if (refusal !== undefined) throw noRedis(`${publicRedisImage} cannot be pulled (${refusal})`);
  }
  report('Starting Redis in a container');
  return RedisContainer.start({ endpoint, image: publicRedisImage, directory, persistent });
}

function noRedis(reason: string): SetupError {
  const install = process.platform === 'darwin' ? 'brew install redis' : 'sudo apt-get install redis-server';
  return new SetupError(
    `No redis-server is installed, and ${reason}.`,
    `${install}, or set SHELLFLEET_REDIS_URL to a Redis of yours (6.2 or newer, noeviction)`,
  );
}
