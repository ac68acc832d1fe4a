import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type RunningRedis, startRedisContainer } from './redis-container.ts';

/**
 * One redis-server on a port of its own, as a process or in a container, with a directory that outlives it until the
 * end of the test.
 */
export interface RedisProcess extends AsyncDisposable {
  port: number;
  directory: string;
  redis: Redis;
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGKILL, and waits until the process is gone. */
  kill(): Promise<void>;
  /** Starts a new process on the same port and directory. Resolves when it answers. */
  start(): Promise<void>;
}

interface RedisProcessOptions {
  settings: readonly string[];
  /** Settings that must be in a file, because the server rewrites it. Default: none. */
  configFile?: string;
  /** Settings with which the test's own client connects. Default: in clear, without a password. */
  client?: { username?: string; password?: string; tls?: { ca: string; cert: string; key: string } };
  port?: number;
  /** Image in whose container the server runs. Default: a process of this machine. */
  image?: string | undefined;
  /** Directories that the settings name. A container has them at the same paths. Default: none. */
  directories?: readonly string[];
}

export async function startRedisProcess(options: RedisProcessOptions): Promise<RedisProcess> {
  const port = options.port ?? (await freePort());
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-redis-'));
  const usual = ['--bind', '127.0.0.1', '--dir', directory];
  const ports = options.client?.tls ? ['--port', '0', '--tls-port', String(port)] : ['--port', String(port)];
  const args = [...(options.configFile ? [options.configFile] : []), ...ports, ...usual, ...options.settings];
  const { image, directories = [] } = options;
  const startServer = async (): Promise<RunningRedis> =>
    image === undefined ? spawnRedis(args) : startRedisContainer(image, args, [directory, ...directories]);
  const redis = new Redis({
    host: '127.0.0.1',
    port,
    ...options.client,
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
  });
  redis.on('error', () => {});
  let server = await startServer();
  const kill = () => server.kill();
  await redis.ping();
  return {
    port,
    directory,
    redis,
    signal: (signal) => server.signal(signal),
    kill,
    async start() {
      server = await startServer();
      await redis.ping();
    },
    async [Symbol.asyncDispose]() {
      redis.disconnect();
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function spawnRedis(args: readonly string[]): RunningRedis {
  const server = spawn('redis-server', args, { stdio: 'ignore' });
  return { signal: (signal) => server.kill(signal), kill: () => killAndWait(server) };
}

async function killAndWait(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, 'exit');
  server.kill('SIGKILL');
  await ended;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return address.port;
}
