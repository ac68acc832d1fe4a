import { totalmem } from 'node:os';
import { describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from './config.ts';

describe('the configuration', () => {
  test('has a default for every setting', () => {
    expect(readConfig({ XDG_STATE_HOME: '/state' })).toMatchObject({
      redisUrl: 'redis://127.0.0.1:6379',
      namespace: 'shellfleet',
      hostId: undefined,
      policies: ['docker'],
      hostUser: { user: undefined, sharedUid: false },
      workspaces: [],
      users: [],
      images: 'any',
      tools: [],
      toolEnv: {},
      transport: 'auto',
      dockerSocketPath: '/var/run/docker.sock',
      stateDirectory: '/state/shellfleet',
      sealKeys: undefined,
      retentionMs: 86_400_000,
      logs: { maxAgeMs: 86_400_000 },
      metrics: undefined,
    });
  });

  test('keeps overflow logs for the retention, unless their age is set', () => {
    const kept = (env: NodeJS.ProcessEnv) => {
      const { retentionMs, logs } = readConfig(env);
      return [retentionMs, logs.maxAgeMs];
    };
    expect(kept({ SHELLFLEET_RETENTION: '90m' })).toEqual([5_400_000, 5_400_000]);
    expect(kept({ SHELLFLEET_RETENTION: '2000', SHELLFLEET_OVERFLOW_LOG_AGE_MS: '9000' })).toEqual([2_000, 9_000]);
  });

  test('parses lists, numbers and the address of the engine', () => {
    const config = readConfig({
      SHELLFLEET_SLOTS: '4',
      SHELLFLEET_WORKSPACES: '/srv/a, /srv/b',
      SHELLFLEET_USERS: 'root',
      SHELLFLEET_POLICIES: 'docker,host',
      SHELLFLEET_HOST_USER: 'sessions',
      SHELLFLEET_HOST_SHARED_UID: '1',
      SHELLFLEET_SEAL_KEY: 'new,old',
      SHELLFLEET_NAMESPACE: '',
      DOCKER_HOST: 'unix:///tmp/engine.sock',
    });
    expect(config).toMatchObject({
      slots: 4,
      workspaces: ['/srv/a', '/srv/b'],
      users: ['root'],
      policies: ['docker', 'host'],
      hostUser: { user: 'sessions', sharedUid: true },
      sealKeys: ['new', 'old'],
      namespace: 'shellfleet',
      dockerSocketPath: '/tmp/engine.sock',
    });
  });

  test('has a slot for each 16 MiB of memory, at most one for each uid', () => {
    const memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
    expect(readConfig({}).slots).toBe(Math.min(10_000, Math.floor(memoryBytes / 2 ** 24)));
    expect(readConfig({ SHELLFLEET_UIDS: '200000-200002' }).slots).toBe(3);
    expect(() => readConfig({ SHELLFLEET_UIDS: '200000-200002', SHELLFLEET_SLOTS: '4' })).toThrow(
      'SHELLFLEET_UIDS must have at least as many uids as there are slots, 4',
    );
  });

  test.each([
    ['SHELLFLEET_REDIS_URL', 'localhost:6379', 'must be a redis://'],
    ['SHELLFLEET_REDIS_URL', 'http://x', 'must be a redis://'],
    ['SHELLFLEET_SLOTS', '0', 'must be at least 1'],
    ['SHELLFLEET_SLOTS', 'many', 'must be a number'],
    ['SHELLFLEET_NAMESPACE', 'a:b', 'may only hold'],
    ['SHELLFLEET_HOST_ID', 'a{b}', 'may only hold'],
    ['SHELLFLEET_POLICIES', 'docker,podman', "knows 'docker', 'host', 'bubblewrap', 'codex' and 'kubernetes'"],
    ['SHELLFLEET_HOST_USER', '-u 0', 'uid:gid'],
    ['SHELLFLEET_HOST_SHARED_UID', 'yes', 'must be 1 or 0'],
    ['SHELLFLEET_WORKSPACES', 'srv', 'absolute'],
    ['SHELLFLEET_WORKSPACES', '/', 'directory of the system'],
    ['SHELLFLEET_WORKSPACES', '/var/run/', 'directory of the system'],
    ['SHELLFLEET_USERS', 'admin', "knows 'root' and 'image'"],
    ['SHELLFLEET_UIDS', '200000', 'must be a range'],
    ['SHELLFLEET_UIDS', '0-2000', 'must begin at 1000 or more'],
    ['SHELLFLEET_MAX_MEMORY_PRESSURE', '101', 'must be at most 100'],
    ['SHELLFLEET_DISK_BYTES', '10g', 'must be a number'],
    ['SHELLFLEET_TOOLS', 'tools.ts', 'absolute'],
    ['SHELLFLEET_TOOL_SLOTS', '0', 'must be at least 1'],
    ['SHELLFLEET_TRANSPORT', 'pigeon', "'socket' or 'attach'"],
    ['SHELLFLEET_METRICS_PORT', '65536', 'must be at most 65535'],
    ['SHELLFLEET_SCALE_TOKEN', 'short', 'must have at least 16 characters'],
    ['SHELLFLEET_SCALE_TOKEN', 'with a space in it', 'must have no spaces'],
    ['SHELLFLEET_RETENTION', 'a day', 'must be a time such as 90m'],
    ['SHELLFLEET_RETENTION', '999', 'must be at least 1000 ms'],
    ['SHELLFLEET_RETENTION', '366d', 'must be at most 31536000000 ms'],
  ])('refuses %s=%s with the reason', (name, value, message) => {
    const read = () => readConfig({ [name]: value });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(`${name} `);
    expect(read).toThrow(message);
  });

  test('has its metrics on loopback unless a host is named', () => {
    const read = (env: NodeJS.ProcessEnv) => readConfig({ SHELLFLEET_METRICS_PORT: '9464', ...env }).metrics;
    expect(read({})).toEqual({ port: 9464, host: '127.0.0.1', scaleToken: undefined });
    expect(read({ SHELLFLEET_METRICS_HOST: '0.0.0.0' })).toMatchObject({ host: '0.0.0.0' });
  });

  test("gives tools the usual variables, and none of the worker's", () => {
    const env = {
      PATH: '/bin',
      HOME: '/home/x',
      SHELLFLEET_SEAL_KEY: 'k',
      SHELLFLEET_TOOLS: '/a.ts, /b.ts,/a.ts',
      OTHER: '1',
    };
    expect(readConfig(env)).toMatchObject({ tools: ['/a.ts', '/b.ts'], toolEnv: { PATH: '/bin', HOME: '/home/x' } });
    expect(Object.keys(readConfig(env).toolEnv)).toEqual(['PATH', 'HOME']);
  });
});
