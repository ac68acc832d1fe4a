import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { FleetFile } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { interrupt, living, newMachine, type UpMachine } from '../support/up-machine.ts';

const WAIT = { timeout: 60_000, interval: 50 };

let machine: UpMachine;
beforeAll(async () => {
  machine = await newMachine({ SHELLFLEET_HOST_USER: 'nobody' });
  await machine.run(['up', '--detach', '--slots', '1', '--policies', 'host']);
}, 120_000);
afterAll(() => machine[Symbol.asyncDispose]());

async function statusOf({ url, key }: NonNullable<FleetFile['api']>, path: string): Promise<number> {
  const headers = key === '' ? {} : { authorization: `Bearer ${key}` };
  return (await fetch(new URL(path, url), { headers })).status;
}

/** Starts `serve`, and returns what it says when it is ready, or when it has ended. */
async function serve(args: string[], env: NodeJS.ProcessEnv = {}) {
  const serving = machine.follow(['serve', ...args], { ...machine.env, ...env });
  onTestFinished(async () => {
    interrupt(serving.child.pid ?? 0);
    await serving.ended;
  });
  const isSettled = () => serving.child.exitCode !== null || serving.said().includes('The HTTP API is at ');
  await expect.poll(isSettled, WAIT).toBe(true);
  return serving;
}

describe('the HTTP API of `up`', () => {
  test('is in the connection file, with a key that it accepts', async () => {
    const { api } = await machine.connection();
    expect(await statusOf(api!, '/v1/me')).toBe(200);
    expect(await statusOf({ url: api!.url, key: '' }, '/v1/me')).toBe(401);
    expect(await readFile(join(machine.directory, 'api-key'), 'utf8')).toBe(api?.key);
    const header = await readFile(join(machine.directory, 'api-header'), 'utf8');
    expect(header).toBe(`Authorization: Bearer ${api?.key}\n`);
    for (const name of ['api-key', 'api-header', 'fleet.json'])
      expect((await stat(join(machine.directory, name))).mode & 0o777).toBe(0o600);
  });

  test('answers the first request that `up` prints', async () => {
    const { stderr } = await machine.run(['up', '--detach']);
    const [line = ''] = /curl .*/.exec(stderr) ?? [];
    const { stdout, stderr: trace } = await promisify(execFile)('sh', ['-c', `set -x; ${line}`]);
    expect(trace).toContain('+ curl');
    expect(trace).not.toContain((await machine.connection()).api?.key); // Other users can list the arguments of curl.
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'success', stdout: 'hello\n' });
  });

  test('lets its user answer their own questions, as nobody else reaches the fleet', async () => {
    const { stdout } = await machine.ask('config', 'show', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ appliedBy: 'up', configuration: { approvals: { self: true } } });
  });

  test('is started again at its address when it dies', async ({ expect }) => {
    const { api } = await machine.connection();
    const first = await machine.apiPid();
    process.kill(first, 'SIGKILL');
    await expect.poll(() => statusOf(api!, '/v1/me').catch(() => 0), WAIT).toBe(200);
    expect(living([first, await machine.apiPid()])).toEqual([await machine.apiPid()]);
    expect((await machine.connection()).api).toEqual(api);
  });

  test('is examined by doctor, and in no support bundle with its key', async () => {
    const { api } = await machine.connection();
    const findings = (await machine.run(['doctor', '--json']).catch((error) => error)).stdout;
    expect(findings).toContain(JSON.stringify({ name: 'http api', state: 'present', detail: `at ${api?.url}` }));
    const bundle = join(machine.directory, 'bundle');
    await machine.ask('support-bundle', '--out', bundle);
    expect(await readFile(join(bundle, 'api.log'), 'utf8')).toContain('api.listening');
    expect(await readFile(join(bundle, 'api.log'), 'utf8')).not.toContain(api?.key);
  });
});

describe('serve', () => {
  test('serves beside the API of `up`, which stays in the connection file', async () => {
    const before = await machine.connection();
    const serving = await serve(['--port', '0']);
    const [url = ''] = /http:\/\/[\d.:]+\d/.exec(serving.said()) ?? [];
    expect(await statusOf({ url, key: before.api?.key ?? '' }, '/v1/me')).toBe(200);
    expect(url).not.toBe(before.api?.url);
    expect(await machine.connection()).toEqual(before);
  });

  test('makes a key and a connection file for a user who has none', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sf-serve-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    const { redisUrl, sealKeys } = await machine.connection();
    const serving = await serve(['--port', '0'], {
      SHELLFLEET_STATE_DIR: directory,
      SHELLFLEET_REDIS_URL: redisUrl,
      SHELLFLEET_SEAL_KEY: sealKeys.join(','),
    });
    expect(serving.said()).toContain(`The key of this user is in ${directory}/api-key.`);
    const { api, ...fleet } = JSON.parse(await readFile(join(directory, 'fleet.json'), 'utf8')) as FleetFile;
    expect(fleet).toEqual({ version: 1, redisUrl, namespace: 'shellfleet', sealKeys });
    expect(await statusOf(api!, '/v1/me')).toBe(200);
  });

  test('refuses an address of other machines, and warns where it may be without TLS', async () => {
    const refused = await serve(['--host', '0.0.0.0', '--port', '0']);
    expect(await refused.ended).toBe(2);
    expect(refused.said()).toMatch(/SHELLFLEET_API_TLS_CERT and SHELLFLEET_API_TLS_KEY, or .* \(--insecure-http\)/);
    const warned = await serve(['--host', '0.0.0.0', '--port', '0', '--insecure-http']);
    expect(warned.said()).toContain('WARNING: the API listens on 0.0.0.0 without TLS.');
  });
});
