import { mkdtemp, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { chooseRedisAddress, parseRedisConfig, renderRedisConfig, writeRedisConfig } from './redis-config.ts';

const settings = {
  port: 7000,
  password: 'p',
  dataDirectory: '/a b',
  bind: '127.0.0.1',
  maxMemoryBytes: 9,
  persistent: true,
};

async function makeConfigPath(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-redis-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return join(directory, 'redis.conf');
}

describe('the configuration of Redis', () => {
  test('keeps every entry: no eviction, and appended once a second', () => {
    const text = renderRedisConfig(settings);
    for (const line of [
      'maxmemory 9',
      'maxmemory-policy noeviction',
      'appendonly yes',
      'appendfsync everysec',
      'dir "/a b"',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
    expect(renderRedisConfig({ ...settings, persistent: false })).toContain('appendonly no');
  });

  test('reads back the address that it wrote', () => {
    expect(parseRedisConfig(renderRedisConfig(settings))).toEqual({ port: 7000, password: 'p' });
    expect(parseRedisConfig('port 0\nrequirepass x')).toBeUndefined();
    expect(parseRedisConfig('')).toBeUndefined();
  });

  test('keeps the address of the last start, so that clients find Redis again', async () => {
    const path = await makeConfigPath();
    const first = await chooseRedisAddress(path);
    await writeRedisConfig(path, { ...settings, ...first });
    expect(await chooseRedisAddress(path)).toEqual(first);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test('takes another port and another password when the last port is taken', async () => {
    const path = await makeConfigPath();
    const first = await chooseRedisAddress(path);
    await writeRedisConfig(path, { ...settings, ...first });
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(first.port, '127.0.0.1', resolve));
    onTestFinished(() => void squatter.close());
    const second = await chooseRedisAddress(path);
    expect(second.port).not.toBe(first.port);
    expect(second.password).not.toBe(first.password);
  });
});
