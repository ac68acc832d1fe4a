import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { resolveSettings } from './connect-settings.ts';
import { fleetFilePath, readFleetFile, writeFleetFile } from './fleet-file.ts';

let directory: string;
let env: NodeJS.ProcessEnv;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-settings-'));
  env = { SHELLFLEET_STATE_DIR: directory };
});
afterEach(() => rm(directory, { recursive: true }));

const file = { version: 1 as const, namespace: 'home', redisUrl: 'redis://:pw@127.0.0.1:7000', sealKeys: ['a', 'b'] };

describe('settings of connect', () => {
  test('prefer options of the caller, then the environment, then the fleet file', async () => {
    await writeFleetFile(file, env);
    expect(await resolveSettings({}, env)).toEqual({
      ...settingsOfFile,
      place: `the namespace home (${fleetFilePath(env)}) of Redis at 127.0.0.1:7000 (${fleetFilePath(env)}).`,
      tenant: 'default',
    });
    expect(await resolveSettings({}, { ...env, SHELLFLEET_TENANT: 't', SHELLFLEET_NAMESPACE: 'n' })).toEqual({
      ...settingsOfFile,
      namespace: 'n',
      place: `the namespace n (SHELLFLEET_NAMESPACE) of Redis at 127.0.0.1:7000 (${fleetFilePath(env)}). But ${fleetFilePath(env)} has the namespace home.`,
      tenant: 't',
    });
    expect(await resolveSettings({ namespace: 'mine' }, { ...env, SHELLFLEET_NAMESPACE: 'n' })).toMatchObject({
      namespace: 'mine',
    });
  });

  test('ignore keys and names of the fleet file when another Redis is given', async () => {
    await writeFleetFile(file, env);
    expect(await resolveSettings({ redisUrl: 'redis://elsewhere' }, env)).toEqual({
      redisUrl: 'redis://elsewhere',
      namespace: 'shellfleet',
      place:
        'the namespace shellfleet (the usual one, because SHELLFLEET_NAMESPACE is not set) of Redis at elsewhere:6379 (as given).',
      tenant: 'default',
      sealKeys: [],
      interceptors: [],
    });
  });

  test('take several keys from SHELLFLEET_SEAL_KEY, the sealing key first', async () => {
    const settings = await resolveSettings(
      {},
      { ...env, SHELLFLEET_REDIS_URL: 'redis://r', SHELLFLEET_SEAL_KEY: 'new, old' },
    );
    expect(settings.sealKeys).toEqual(['new', 'old']);
  });

  test('name the next step in the error when no fleet is configured', async () => {
    await expect(resolveSettings({}, env)).rejects.toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      message: expect.stringMatching(/No fleet was found.*npm start.*shellfleet up/),
    });
  });

  test('name the connection file that cannot be read, and the next step', async () => {
    await writeFile(join(directory, 'file'), '');
    const within = join(directory, 'file');
    await expect(resolveSettings({}, { SHELLFLEET_STATE_DIR: within })).rejects.toMatchObject({
      code: 'REDIS_UNSUITABLE',
      message: expect.stringMatching(/file\/fleet\.json cannot be read \(ENOTDIR\).*SHELLFLEET_STATE_DIR/),
    });
  });

  test.each(['no key', '/absent/key.pem', 'SHA256:AAAA'])(
    'refuse the signing key %j with instructions to make one, without repeating it',
    async (signingKey) => {
      const refused = resolveSettings({ redisUrl: 'redis://r', sealKeys: ['x'], signingKey }, env);
      const error = (await refused.catch((thrown: unknown) => thrown)) as Error;
      expect(error).toMatchObject({
        code: 'COMMAND_INVALID',
        message: expect.stringMatching(/signingKey must be an Ed25519 private key .*openssl genpkey/),
        context: { issues: [{ path: 'signingKey', message: expect.any(String) }] },
      });
      expect(error.message).not.toContain(signingKey);
    },
  );
});

describe('fleet file', () => {
  test('is accessible to its user alone, and is read back as it was written', async () => {
    const path = await writeFleetFile(file, env);
    expect(path).toBe(fleetFilePath(env));
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readFleetFile(env)).toEqual(file);
  });

  test('is named in the error when its content is broken', async () => {
    await writeFile(fleetFilePath(env), '{"version": 2}');
    await expect(readFleetFile(env)).rejects.toMatchObject({ message: expect.stringContaining(fleetFilePath(env)) });
  });

  test('lies in the state directory that the environment names', () => {
    expect(fleetFilePath({ XDG_STATE_HOME: '/x' })).toBe('/x/shellfleet/fleet.json');
    expect(fleetFilePath({})).toMatch(/\/\.local\/state\/shellfleet\/fleet\.json$/);
  });
});

const settingsOfFile = {
  redisUrl: file.redisUrl,
  namespace: file.namespace,
  sealKeys: file.sealKeys,
  interceptors: [],
};
