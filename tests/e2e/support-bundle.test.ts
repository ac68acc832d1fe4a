import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { connectTestRedis } from '../support/mailbox-session.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

let stack: TestFleet;
let cli: FleetCli;
let directory: string;
beforeAll(async () => {
  stack = await startFleet({ slots: 1 });
  cli = new FleetCli(stack);
  directory = await mkdtemp(join(tmpdir(), 'sf-bundle-'));
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const random = () => randomBytes(18).toString('hex');

/** Secrets by kind. Each is planted where it could reach a bundle. */
const SECRETS = {
  'password of Redis': random(),
  'seal key of the state directory': randomBytes(32).toString('base64'),
  'key in the header for curl': random(),
  'signing key': generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
  'named variable': random(),
  'variable with a telling name': random(),
  'other variable': random(),
  'secret of a session': random(),
  'variable of a session': random(),
  script: random(),
  'token of a known format': `ghp_${randomBytes(18).toString('hex')}`,
  'credentials of a URL': random(),
  'field of the configuration': random(),
  'path of a webhook': random(),
  'header in the configuration': random(),
};

/** The words of the worker's log that has secrets which this machine can know. */
const log = () =>
  [
    ...['password of Redis', 'seal key of the state directory', 'key in the header for curl'],
    ...['signing key', 'named variable'],
    ...['variable with a telling name', 'token of a known format'],
  ].map((kind) =>
    JSON.stringify({ level: 'warn', msg: `planted ${kind}`, value: SECRETS[kind as keyof typeof SECRETS] }),
  );

describe('a support bundle', () => {
  test('has what helps, is private, and has no secret of any kind', async () => {
    await using redis = await connectTestRedis();
    const user = `bundle-${random()}`;
    await redis.redis.acl('SETUSER', user, 'on', `>${SECRETS['password of Redis']}`, '~*', '&*', '+@all');
    const holder = await stack.fleet.session('holds');
    await holder.run('true');
    const waiting = await stack.fleet.session('waits', {
      env: { OF_SESSION: SECRETS['variable of a session'] },
      secrets: { DEPLOY: SECRETS['secret of a session'] },
    });
    await waiting.submit(`echo ${SECRETS.script}`);
    for (const name of ['workers.log', 'api.log']) await writeFile(join(directory, name), `${log().join('\n')}\n`);
    await writeFile(join(directory, 'seal-key'), SECRETS['seal key of the state directory']);
    await writeFile(join(directory, 'api-header'), `Authorization: Bearer ${SECRETS['key in the header for curl']}\n`);
    const configuration = join(directory, 'host.yaml');
    await writeFile(
      configuration,
      `slots: 1\nwebhook:\n  url: https://me:${SECRETS['credentials of a URL']}@hooks.example/\n  apiToken: ${SECRETS['field of the configuration']}\nother:\n  url: https://hooks.example/h/${SECRETS['path of a webhook']}\n  Authorization: Bearer ${SECRETS['header in the configuration']}\n`,
    );
    const address = new URL(stack.redisUrl);
    const out = join(directory, 'bundle');
    const { exitCode, stdout, stderr } = await cli.text(['support-bundle', '--out', out, '--json'], {
      env: {
        SHELLFLEET_STATE_DIR: directory,
        SHELLFLEET_CONFIG: configuration,
        SHELLFLEET_REDIS_URL: `redis://${user}:${SECRETS['password of Redis']}@${address.host}${address.pathname}`,
        SHELLFLEET_SIGNING_KEY: SECRETS['signing key'],
        SHELLFLEET_SECRET: 'DEPLOY_TO',
        DEPLOY_TO: SECRETS['named variable'],
        CI_TOKEN: SECRETS['variable with a telling name'],
        SHELLFLEET_ENV: `PLAIN=${SECRETS['other variable']}`,
      },
    });
    await redis.redis.acl('DELUSER', user);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const files = (await readdir(out)).sort();
    expect(JSON.parse(stdout)).toEqual({ path: out, files: expect.arrayContaining(files) });
    expect((await stat(out)).mode & 0o777).toBe(0o700);
    const texts = new Map<string, string>();
    for (const name of files) {
      expect((await stat(join(out, name))).mode & 0o777, name).toBe(0o600);
      texts.set(name, await readFile(join(out, name), 'utf8'));
    }
    for (const [kind, secret] of Object.entries(SECRETS))
      for (const [name, text] of texts) expect(text.includes(secret), `${kind} in ${name}`).toBe(false);

    const json = (name: string) => JSON.parse(texts.get(name) ?? '');
    expect(json('versions.json')).toMatchObject({ shellfleet: expect.any(String), node: process.version });
    expect(json('variables.json')).toMatchObject({
      SHELLFLEET_SIGNING_KEY: '(set, not shown)',
      SHELLFLEET_CONFIG: configuration,
    });
    expect(json('hosts.json')).toMatchObject([{ id: 'h1', slots: 1 }]);
    expect(json('queue.json')).toMatchObject([{ id: 'waits', queuedCommands: 1, position: 1 }]);
    expect(json('load.json')).toMatchObject({ sessions: { held: 1, waiting: 1 } });
    expect(json('keys.json').kinds).toEqual(
      expect.arrayContaining([{ kind: '{session}:state', keys: 2, averageBytes: expect.any(Number) }]),
    );
    expect(texts.get('redis-info.txt')).toMatch(/redis_version:/);
    expect(texts.get('log-of-h1.jsonl')).toMatch(/^\{.*"msg":.*\}\n/);
    expect(texts.get('workers.log')).toContain('planted password of Redis');
    expect(json('host-configuration.json')).toEqual({
      slots: 1,
      webhook: { url: 'https://[REDACTED]@hooks.example/', apiToken: '[REDACTED]' },
      other: { url: 'https://hooks.example/[REDACTED]', Authorization: '[REDACTED]' },
    });
    for (const [name, text] of texts) expect(text, name).not.toContain('This could not be read');
    await Promise.all([holder.close(), waiting.close()]);
  });

  test('is one private archive if its name ends like one', async () => {
    const out = join(directory, 'bundle-1.tgz');
    const { exitCode, stdout } = await cli.text(['support-bundle', '--out', out]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: `${out}\n` });
    expect((await stat(out)).mode & 0o777).toBe(0o600);
    const unpacked = join(directory, 'bundle-1');
    execFileSync('tar', ['-xzf', out, '-C', directory]);
    expect(await readdir(unpacked)).toEqual(expect.arrayContaining(['versions.json', 'queue.json', 'workers.log']));
    expect(JSON.parse(await readFile(join(unpacked, 'hosts.json'), 'utf8'))).toMatchObject([{ id: 'h1', slots: 1 }]);
  });

  test.each(['bundle', 'bundle-1.tgz'])('is not written over another one: %s', async (name) => {
    const out = join(directory, name);
    const { exitCode, stderr } = await cli.text(['support-bundle', '--out', out]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(`${out} cannot be written: EEXIST`);
    expect(await stat(out)).toMatchObject({ size: expect.toSatisfy((size: number) => size > 0) });
  });
});
