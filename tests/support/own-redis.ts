import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** A redis-server of the test's own, for tests that a shared one does not allow: other settings, a flush, an outage. */
export interface OwnRedis extends AsyncDisposable {
  url: string;
  redis: Redis;
  /** SIGSTOP (SIGCONT resumes it): connections stay open, replies do not arrive. */
  freeze(): void;
  thaw(): void;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** A new process on the same port, with the data of the append-only file if the settings enable it. */
  start(): Promise<void>;
  /** kill(), then start(). */
  restart(): Promise<void>;
}

export async function startOwnRedis(...settings: string[]): Promise<OwnRedis> {
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), 'shellfleet-redis-'));
  const usual = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
  const spawnServer = () => spawn('redis-server', ['--port', String(port), ...usual, ...settings], { stdio: 'ignore' });
  const url = `redis://127.0.0.1:${port}`;
  const redis = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  let server = spawnServer();
  await redis.ping();
  const start = async () => {
    server = spawnServer();
    await redis.ping();
  };
  return {
    url,
    redis,
    freeze: () => server.kill('SIGSTOP'),
    thaw: () => server.kill('SIGCONT'),
    kill: () => kill(server),
    start,
    async restart() {
      await kill(server);
      await start();
    },
    async [Symbol.asyncDispose]() {
      redis.disconnect();
      await kill(server);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function kill(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, 'exit');
  server.kill('SIGKILL');
  await ended;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return address.port;
}
