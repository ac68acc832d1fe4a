import type { Fleet, Scope } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiProcess, startApiProcess } from '../support/api/api-process.ts';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';

// Promise: nobody gets anything from the servers without a key that works and has the scope; a revoked key is refused
// by every server within a second.

let stage: ClientStage;
let fleet: Fleet;
/** Two servers of one fleet. The second one has an issuer's pages and a further name. */
let servers: ApiProcess[];
beforeAll(async () => {
  stage = await setClientStage();
  [fleet, ...servers] = await Promise.all([
    stage.connect(),
    startApiProcess(stage),
    startApiProcess(stage, {
      SHELLFLEET_API_CORS_ORIGINS: 'https://app.example',
      SHELLFLEET_API_ALLOWED_HOSTS: 'fleet.example',
    }),
  ]);
});
afterAll(async () => {
  for (const server of servers ?? []) await server[Symbol.asyncDispose]();
  await stage?.[Symbol.asyncDispose]();
});

const createKey = (...scopes: Scope[]) => fleet.keys.create({ name: 'test', scopes });
const get = (server: ApiProcess, path: string, key: string) =>
  fetch(server.url + path, { headers: { authorization: `Bearer ${key}` } });

describe('a revoked key', () => {
  test('is refused by every server within a second', async () => {
    const { key, id } = await createKey('read');
    for (const server of servers) expect((await get(server, '/v1/me', key)).status).toBe(200);
    await fleet.keys.revoke(id);
    const revokedAt = performance.now();
    for (const server of servers)
      await expect.poll(async () => (await get(server, '/v1/me', key)).status, { interval: 20 }).toBe(401);
    expect(performance.now() - revokedAt).toBeLessThan(1_000);
  });
});

describe('the log of a server', () => {
  test('has neither keys nor queries', async () => {
    const { key } = await createKey('read');
    await get(servers[0] as ApiProcess, `/v1/me?token=${key}`, key);
    expect(servers[0]?.output).toContain('/v1/me');
    for (const { output } of servers) expect(output).not.toContain('sfk_');
  });
});
