import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureRedis } from '@shellfleet/setup';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { until } from '../support/until.ts';

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-redis-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

describe('the Redis of `shellfleet up`', () => {
  test('restarts after its death with the same address and data', async () => {
    const said: string[] = [];
    const directory = await makeDirectory();
    await using server = await ensureRedis({ env: {}, directory, persistent: true, report: (line) => said.push(line) });
    const redis = new Redis(server.url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
    redis.on('error', () => {}); // errors while Redis is away
    onTestFinished(() => redis.disconnect());
    await redis.config('SET', 'appendfsync', 'always');
    await redis.set('a', '1');
    const pid = Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1]);
    process.kill(pid, 'SIGKILL');
    expect(await redis.get('a')).toBe('1');
    expect(said).toContain('Redis ended (SIGKILL); starting it again');
  });

  test('leaves no process if it is closed while it restarts', async () => {
    const directory = await makeDirectory();
    const server = await ensureRedis({ env: {}, directory, persistent: false, report: () => {} });
    const readPid = async () => Number((await readFile(join(directory, 'redis.pid'), 'utf8')).split('\n')[0]);
    const first = await readPid();
    process.kill(first, 'SIGKILL');
    const second = await until(readPid, (pid) => pid !== first);
    await server.close();
    expect(existsSync(`/proc/${second}`)).toBe(false);
  });

  test('keeps its address and data after a stop and a start', async () => {
    const directory = await makeDirectory();
    const options = { env: {}, directory, persistent: true, report: () => {} };
    const first = await ensureRedis(options);
    const before = new Redis(first.url);
    await before.set('a', '1');
    before.disconnect();
    await first.close();
    await using second = await ensureRedis(options);
    expect(second.url).toBe(first.url);
    const after = new Redis(second.url);
    onTestFinished(() => after.disconnect());
    expect(await after.get('a')).toBe('1');
  });

  test('requires its password and evicts nothing', async () => {
    await using server = await ensureRedis({
      env: {},
      directory: await makeDirectory(),
      persistent: false,
      report: () => {},
    });
    const redis = new Redis(server.url);
    const stranger = new Redis(server.url.replace(/:[^:@/]+@/, ''), { lazyConnect: true, retryStrategy: () => null });
    stranger.on('error', () => {});
    onTestFinished(() => {
      redis.disconnect();
      stranger.disconnect();
    });
    expect(await redis.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
    await expect(stranger.get('a')).rejects.toThrow('NOAUTH');
  });

  test('is not started or stopped if the operator names another Redis', async () => {
    const env = { SHELLFLEET_REDIS_URL: 'redis://somewhere:1' };
    const redis = await ensureRedis({ env, directory: '/nowhere', persistent: true, report: vi.fn() });
    expect(redis.url).toBe('redis://somewhere:1');
    await redis.close();
  });
});
