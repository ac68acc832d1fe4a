import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fleet } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { declareTestFleet } from '../support/keyspace.ts';
import { freePort, type RedisProcess, startRedisProcess } from '../support/redis-process.ts';

// Promise: `hosts invite` and `worker --join` add a host to a fleet, with secrets in one private file alone.

const password = randomBytes(12).toString('hex');
const sealKey = randomBytes(32).toString('base64');
const namespace = `t-${randomBytes(5).toString('hex')}`;
const address = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address;

let server: RedisProcess;
let directory: string;
let cli: FleetCli;
let workerRedisUrl: string;
let invitation: string;
let said: string;

/** The surroundings of the invited machine. */
const invited = () => ({
  SHELLFLEET_REDIS_URL: '',
  SHELLFLEET_NAMESPACE: '',
  SHELLFLEET_SEAL_KEY: '',
  SHELLFLEET_STATE_DIR: join(directory, 'state'),
  SHELLFLEET_HOST_ID: 'joined',
  SHELLFLEET_DEFAULT_IMAGE: inject('sessionImage'),
  DOCKER_HOST: inject('dockerHost'),
});

const variant = async (name: string, changes: Record<string, unknown>) => {
  const path = join(directory, name);
  await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(invitation, 'utf8')), ...changes }), {
    mode: 0o600,
  });
  return path;
};

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-join-'));
  const configFile = join(directory, 'redis.conf');
  await writeFile(configFile, 'appendonly yes\n');
  const settings = ['--bind', '0.0.0.0', '--requirepass', password];
  server = await startRedisProcess({ settings, configFile, port: await freePort(), client: { password } });
  const redisUrl = `redis://:${password}@127.0.0.1:${server.port}`;
  await declareTestFleet(redisUrl, namespace);
  cli = new FleetCli({ redisUrl, namespace, sealKey });
  workerRedisUrl = `redis://${address}:${server.port}`;
  invitation = join(directory, 'join.json');
  const run = await cli.text(['hosts', 'invite', '--worker-redis-url', workerRedisUrl], { stdoutPath: invitation });
  expect(run).toMatchObject({ exitCode: 0, stdout: '' });
  said = run.stderr;
});

afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

describe('an invitation', () => {
  test('is a file for its owner alone, with a Redis user that outlives a restart', async () => {
    const { mode } = await stat(invitation);
    const { redisUrl, ...rest } = JSON.parse(await readFile(invitation, 'utf8'));
    const user = /Redis user (worker-[0-9a-f]{8})\./.exec(said)?.[1];
    expect({ mode: mode & 0o777, ...rest }).toEqual({
      ...{ mode: 0o600, version: 1, namespace, sealKeys: [sealKey] },
      fleetId: expect.stringMatching(/^[0-9a-f]{12}$/),
    });
    expect(redisUrl).toMatch(new RegExp(`^redis://${user}:[0-9a-f]{48}@${address}:${server.port}$`));
    expect(said).not.toContain(new URL(redisUrl).password);
    expect(await readFile(join(directory, 'redis.conf'), 'utf8')).toContain(`user ${user} `);
  });

  test('is refused while Redis has an address of this machine only', async () => {
    const run = await cli.text(['hosts', 'invite']);
    expect(run).toMatchObject({ exitCode: 2, stdout: '' });
    expect(run.stderr).toContain('can be reached from this machine only');
  });

  test('begins a fleet only where there is none', async () => {
    const args = ['hosts', 'invite', '--new-fleet', '--worker-redis-url', workerRedisUrl];
    const refused = await cli.text(args);
    expect(refused).toMatchObject({ exitCode: 125, stdout: '' });
    expect(refused.stderr).toContain('Leave --new-fleet out');
    const env = { SHELLFLEET_NAMESPACE: `${namespace}-2`, SHELLFLEET_SEAL_KEY: '', SHELLFLEET_STATE_DIR: directory };
    const begun = await cli.text(args, { env });
    const { sealKeys, namespace: other } = JSON.parse(begun.stdout);
    const { mode } = await stat(join(directory, 'fleet.json'));
    expect({ other, mode: mode & 0o777, ...JSON.parse(await readFile(join(directory, 'fleet.json'), 'utf8')) }).toEqual(
      {
        ...{ other: `${namespace}-2`, mode: 0o600, version: 1, namespace: `${namespace}-2`, sealKeys },
        redisUrl: `redis://:${password}@127.0.0.1:${server.port}`,
      },
    );
    const next = await cli.text(['hosts', 'invite', '--worker-redis-url', workerRedisUrl], { env });
    expect(JSON.parse(next.stdout).sealKeys).toEqual(sealKeys);
  });

  test('is private also where its command is refused at once', async () => {
    const path = join(directory, 'refused.json');
    const { exitCode } = await cli.text(['hosts', 'invite', '--no-such-option'], { stdoutPath: path });
    expect({ exitCode, mode: (await stat(path)).mode & 0o777 }).toEqual({ exitCode: 2, mode: 0o600 });
  });

  test('refuses a password with an unescaped @, the end of which would stay in it', async () => {
    const run = await cli.text(['hosts', 'invite', '--worker-redis-url', `redis://:a@b@${address}:${server.port}`]);
    expect(run).toMatchObject({ exitCode: 2, stdout: '' });
    expect(run.stderr).toContain('The Redis URL is not of the form');
    expect(run.stderr).not.toContain('a@b');
  });

  test('takes a Redis user that exists, and makes none', async () => {
    const url = `redis://own-user:secret@${address}:${server.port}`;
    const before = await server.redis.acl('USERS');
    const run = await cli.text(['hosts', 'invite', '--worker-redis-url', url]);
    expect(JSON.parse(run.stdout).redisUrl).toBe(url);
    expect(await server.redis.acl('USERS')).toEqual(before);
  });
});

describe('a worker that joins', () => {
  test('tells what it found, and serves a session', async () => {
    const worker = cli.start(['worker', '--join', invitation], { env: invited(), stdin: null });
    try {
      const { redisUrl, sealKeys } = JSON.parse(await readFile(invitation, 'utf8'));
      await using fleet = await Fleet.connect({ redisUrl, namespace, sealKeys });
      const session = await fleet.session('first');
      expect(await session.run('echo hi')).toMatchObject({ outcome: 'success', stdout: 'hi\n', hostId: 'joined' });
      await session.close();
      const { stderr } = worker.output();
      expect(stderr.split('\n').filter((line) => !line.startsWith('shellfleet: ok: '))).toEqual(['']);
      expect(stderr).toContain('ok: clock: within a minute of that of Redis\n');
    } finally {
      worker.child.kill('SIGTERM');
      await worker.end;
    }
  });

  test('reads an invitation from stdin, and names all that is missing before it ends', async () => {
    const { redisUrl: _url, ...rest } = JSON.parse(await readFile(invitation, 'utf8'));
    const stdin = JSON.stringify({ ...rest, redisUrl: `redis://${address}:1` });
    const env = { ...invited(), DOCKER_HOST: 'unix:///nonexistent.sock' };
    const run = await cli.text(['worker', '--join', '-'], { env, stdin });
    expect(run).toMatchObject({ exitCode: 1, stdout: '' });
    expect(run.stderr).toMatch(/^shellfleet: missing: docker: no engine answers.* Fix: start that engine/m);
    expect(run.stderr).toMatch(/^shellfleet: missing: fleet’s redis: .* Fix: /m);
    expect(run.stderr).toContain('The worker was not started');
  });

  test('is refused where Redis has another fleet', async () => {
    const path = await variant('other.json', { fleetId: '0123456789ab' });
    const run = await cli.text(['worker', '--join', path], { env: invited() });
    expect(run).toMatchObject({ exitCode: 1, stdout: '' });
    expect(run.stderr).toContain('uses the fleet 0123456789ab');
  });

  test('refuses a file that others can read, and one that is no invitation', async () => {
    const path = await variant('open.json', {});
    await chmod(path, 0o644);
    const open = await cli.text(['worker', '--join', path], { env: invited() });
    expect(open).toMatchObject({ exitCode: 2, stdout: '' });
    expect(open.stderr).toContain(`chmod 600 ${path}`);
    const wrong = await cli.text(['worker', '--join', '-'], { env: invited(), stdin: '{}' });
    expect(wrong).toMatchObject({ exitCode: 2, stdout: '' });
  });

  test('refuses an invitation beside variables that name a fleet', async () => {
    const run = await cli.text(['worker', '--join', invitation]);
    expect(run).toMatchObject({ exitCode: 2, stdout: '' });
    expect(run.stderr).toContain('SHELLFLEET_REDIS_URL, SHELLFLEET_NAMESPACE, SHELLFLEET_SEAL_KEY');
  });
});
