import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';

/** A redis-server of this test's own, for what a shared one could not bear: other settings, a flush, an absence. */
export interface OwnRedis extends AsyncDisposable {
  url: string;
  redis: Redis;
  /** SIGSTOP and SIGCONT: connections stay, answers do not come. */
  freeze(): void;
  thaw(): void;
}

export async function startOwnRedis(...settings: string[]): Promise<OwnRedis> {
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...settings];
  const server: ChildProcess = spawn('redis-server', args, { stdio: 'ignore' });
  const url = `redis://127.0.0.1:${port}`;
  const redis = new Redis(url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  await redis.ping();
  return {
    url,
    redis,
    freeze: () => server.kill('SIGSTOP'),
    thaw: () => server.kill('SIGCONT'),
    async [Symbol.asyncDispose]() {
      redis.disconnect();
      server.kill('SIGKILL');
      while (server.exitCode === null && server.signalCode === null) await delay(5);
    },
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
