import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

export interface OwnRedis extends AsyncDisposable {
  url: string;
  /** Ends the server with SIGKILL and starts it again on the same port, with what its append-only file holds. */
  restart(): Promise<void>;
}

/** A redis-server for one test: what it does to the server concerns nobody else. Every write is on disk before it is answered. */
export async function startOwnRedis(): Promise<OwnRedis> {
  const port = await findFreePort();
  const folder = await mkdtemp(join(tmpdir(), 'shellfleet-redis-'));
  const url = `redis://127.0.0.1:${port}`;
  const start = async () => {
    const settings = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always', '--dir', folder];
    const child = spawn('redis-server', ['--port', `${port}`, '--bind', '127.0.0.1', ...settings], { stdio: 'ignore' });
    await once(child, 'spawn');
    await untilReady(url);
    return child;
  };
  let server = await start();
  const stop = async () => {
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };
  return {
    url,
    async restart() {
      await stop();
      server = await start();
    },
    async [Symbol.asyncDispose]() {
      await stop();
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
