import { randomBytes } from 'node:crypto';
import type { CreateKeyOptions, Fleet } from '@shellfleet/client';
import { accessKeys, apiKeyText } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { runCli } from '../support/run-cli.ts';

// Promise: Redis never has the text of a key, and who can write to Redis without the seal key makes no key.

let stage: ClientStage;
let fleet: Fleet;
beforeAll(async () => {
  stage = await setClientStage();
  fleet = await stage.connect();
});
afterAll(() => stage[Symbol.asyncDispose]());

const stored = () => stage.redis.hgetall(accessKeys(stage.keyspace).apiKeys);

describe('an API key', () => {
  test('is found by its text alone, from any process', async () => {
    const { key, ...info } = await fleet.keys.create({ name: 'ci', tenant: 'acme', scopes: ['read', 'submit'] });
    expect(info).toMatchObject({ name: 'ci', tenant: 'acme', scopes: ['submit', 'read'] });
    const other = await stage.connect({ tenant: 'other' });
    expect(await other.keys.find(key)).toEqual(info);
    for (const wrong of [apiKeyText(info.id, 'x'.repeat(43)), apiKeyText('f'.repeat(16), key.slice(-43)), key.slice(1)])
      expect(await other.keys.find(wrong)).toBeUndefined();
  });

  test('is in Redis neither as its text nor as its hash in clear', async () => {
    const { key, id } = await fleet.keys.create({ name: 'hidden', scopes: ['admin'] });
    const sealed = (await stored())[id] ?? '';
    expect(sealed).toMatch(/^1\.[\w-]+\.[\w-]+$/);
    expect(sealed).not.toContain(key.slice(-43));
  });

  test('is refused if it was written without the seal key, or moved to another id', async () => {
    const forger = await stage.connect({ sealKeys: [randomBytes(32).toString('base64')] });
    const forged = await forger.keys.create({ name: 'forged', scopes: ['admin'] });
    await expect(fleet.keys.find(forged.key)).rejects.toMatchObject({ code: 'SEAL_KEY_UNKNOWN' });
    await expect(fleet.keys.list()).rejects.toMatchObject({ message: expect.stringContaining(forged.id) });
    const { key, id } = await fleet.keys.create({ name: 'moved', scopes: ['read'] });
    const target = apiKeyText('a'.repeat(16), key.slice(-43));
    await stage.redis.hset(accessKeys(stage.keyspace).apiKeys, 'a'.repeat(16), (await stored())[id] ?? '');
    await expect(fleet.keys.find(target)).rejects.toMatchObject({ code: 'SEAL_KEY_UNKNOWN' });
    expect(await fleet.keys.findWorking([forged.id, 'a'.repeat(16), id])).toEqual(new Set([id]));
    for (const one of [forged.id, 'a'.repeat(16)]) expect(await fleet.keys.revoke(one)).toBe(one);
  });

  test('stops working when it expires, and stays in the list', async () => {
    const options = { name: 'short', scopes: ['read'], expiresAt: new Date(Date.now() + 50) } as const;
    const { key, id } = await fleet.keys.create({ ...options, scopes: [...options.scopes] });
    expect(await fleet.keys.find(key)).toMatchObject({ expiresAt: options.expiresAt.toISOString() });
    await expect.poll(() => fleet.keys.find(key)).toBeUndefined();
    expect(await fleet.keys.findWorking([id])).toEqual(new Set());
    expect(await fleet.keys.list()).toContainEqual(expect.objectContaining({ id }));
  });

  test('has the time of its last use', async () => {
    const { id } = await fleet.keys.create({ name: 'used', scopes: ['read'] });
    const before = Date.now();
    await fleet.keys.noteUse(id);
    const { lastUsedAt = '' } = (await fleet.keys.list()).find((one) => one.id === id) ?? {};
    expect(Date.parse(lastUsedAt)).toBeGreaterThanOrEqual(before);
  });

  test('is revoked by its id, or by a name that no other key has', async () => {
    const [one, twin] = [
      await fleet.keys.create({ name: 'twin', scopes: ['read'] }),
      await fleet.keys.create({ name: 'twin', scopes: ['read'] }),
    ];
    await expect(fleet.keys.revoke('twin')).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
      message: expect.stringContaining(one.id),
    });
    await fleet.keys.noteUse(one.id);
    expect(await fleet.keys.revoke(one.id)).toBe(one.id);
    expect(await fleet.keys.revoke('twin')).toBe(twin.id);
    expect([await fleet.keys.find(one.key), await fleet.keys.find(twin.key)]).toEqual([undefined, undefined]);
    expect(await stage.redis.hexists(accessKeys(stage.keyspace).apiKeyUses, one.id)).toBe(0);
    for (const gone of ['twin', one.id])
      await expect(fleet.keys.revoke(gone)).rejects.toMatchObject({ code: 'COMMAND_INVALID' });
  });

  test.each<[string, object]>([
    ['name', { name: 'a b', scopes: ['read'] }],
    ['scopes', { name: 'a', scopes: [] }],
    ['scopes.0', { name: 'a', scopes: ['write'] }],
    ['tenant', { name: 'a', scopes: ['read'], tenant: 'a:b' }],
    ['expiresAt', { name: 'a', scopes: ['read'], expiresAt: new Date(0) }],
    ['scope', { name: 'a', scopes: ['read'], scope: 'read' }],
  ])('is not made with an invalid %s', async (path, options) => {
    await expect(fleet.keys.create(options as CreateKeyOptions)).rejects.toMatchObject({
      code: 'COMMAND_INVALID',
      context: { issues: [expect.objectContaining({ path })] },
    });
  });

  test('is neither made nor read without the seal key of the fleet', async () => {
    const { key } = await fleet.keys.create({ name: 'sealed', scopes: ['read'] });
    const keyless = await stage.connect({ sealKeys: undefined });
    for (const call of [
      keyless.keys.create({ name: 'a', scopes: ['read'] }),
      keyless.keys.find(key),
      keyless.keys.list(),
    ])
      await expect(call).rejects.toMatchObject({ code: 'SEAL_KEY_UNKNOWN' });
  });
});

describe('the verb keys', () => {
  test('makes a key for a tenant, and prints it on stdout alone', async () => {
    const args = [
      'keys',
      'create',
      '--tenant',
      'acme',
      '--scopes',
      'read, approve',
      '--name',
      'bot',
      '--expires',
      '1d',
    ];
    const { exitCode, stdout, stderr } = await runCli(stage, args);
    expect(exitCode).toBe(0);
    const key = stdout.toString().trim();
    const found = await fleet.keys.find(key);
    expect(found).toMatchObject({ name: 'bot', tenant: 'acme', scopes: ['read', 'approve'] });
    expect(Date.parse(found?.expiresAt ?? '') - Date.now()).toBeGreaterThan(86_000_000);
    expect(stderr).toContain('export SHELLFLEET_API_KEY=');
    expect(stderr).not.toContain(key);
  });

  test('makes a key with the name of the user and two scopes by default', async () => {
    const { stdout } = await runCli(stage, ['keys', 'create', '--json']);
    expect(JSON.parse(stdout.toString())).toMatchObject({
      key: expect.stringMatching(/^sfk_/),
      name: expect.stringMatching(/^[^@]+@[^@]+$/),
      scopes: ['submit', 'read'],
    });
  });

  test('lists keys without their texts, and revokes one', async () => {
    const { key, id } = await fleet.keys.create({ name: 'listed', scopes: ['read'] });
    const listed = (await runCli(stage, ['keys', 'ls'])).stdout.toString();
    expect(listed).toMatch(new RegExp(`^${id} +listed +default +read +\\S+Z +- +-$`, 'm'));
    expect(listed).not.toContain(key.slice(-43));
    const ids = (await runCli(stage, ['keys', 'ls', '--json'])).stdout.toString().trim().split('\n');
    expect(ids.map((line) => JSON.parse(line).id)).toContain(id);
    const { exitCode, stderr } = await runCli(stage, ['keys', 'revoke', 'listed']);
    expect([exitCode, await fleet.keys.find(key)]).toEqual([0, undefined]);
    expect(stderr).toContain(`The key ${id} is revoked.`);
  });

  test.each([
    [['create', '--scopes', 'write'], "must be 'submit', 'read', 'approve' or 'admin'"],
    [['create', '--name', 'a b'], 'must be 1 to 64 characters'],
    [['revoke', 'nobody'], 'There is no API key'],
  ])('refuses %j', async (args, message) => {
    const { exitCode, stderr } = await runCli(stage, ['keys', ...args]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
  });
});
