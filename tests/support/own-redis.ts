import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** A redis-server of this test's own, for what a shared one could not bear: other settings, a flush, an absence. */
export interface OwnRedis extends AsyncDisposable {
  url: string;
  redis: Redis;
  /** SIGSTOP and SIGCONT: connections stay, answers do not come. */
  freeze(): void;
  thaw(): void;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** On the same port, with what its append-only file holds. */
  start(): Promise<void>;
  restart(): Promise<void>;
}

/** Every write is on disk before it is answered, unless the settings say otherwise. */
export async function startOwnRedis(...settings: string[]): Promise<OwnRedis> {
  const port = await findFreePort();
  const folder = await mkdtemp(join(tmpdir(), 'shellfleet-redis-'));
  const url = `redis://127.0.0.1:${port}`;
  const durable = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always', '--dir', folder];
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', ...durable, ...settings];
  const spawnServer = async () => {
    const child = spawn('redis-server', args, { stdio: 'ignore' });
    await once(child, 'spawn');
    await untilReady(url);
    return child;
  };
  let server = await spawnServer();
  const redis = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  const start = async () => {
    server = await spawnServer();
  };
  const kill = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };
  return {
    url,
    redis,
    freeze: () => server.kill('SIGSTOP'),
    thaw: () => server.kill('SIGCONT'),
    kill,
    start,
    async restart() {
      await kill();
      await start();
    },
    async [Symbol.asyncDispose]() {
      redis.disconnect();
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return address.port;
}

async function untilReady(url: string): Promise<void> {
  const redis = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: 500 });
  redis.on('error', () => {});
  await redis.ping();
  redis.disconnect();
}
