import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connectRedis } from '@shellfleet/redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startFakeRedis } from '../support/fake-redis.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { freePort } from '../support/redis-process.ts';
import { startFleet } from '../support/start-fleet.ts';

// Promise: the client reports a problem of Redis in one line within 5 s, with the name of the setting and the next
// step.

const WITHIN_MS = 5_000;

let own: OwnRedis;
beforeAll(async () => {
  own = await startOwnRedis();
  await own.redis.acl('SETUSER', 'known', 'on', '>right', '~*', '&*', '+@all');
  await own.redis.acl('SETUSER', 'limited', 'on', '>right', '~*', '&*', '+@all', '-zadd');
});
afterAll(() => own[Symbol.asyncDispose]());

async function refusal(url: string): Promise<{ code: string; setting: unknown; message: string; inTime: boolean }> {
  const from = performance.now();
  const error = await connectRedis(url, 'producer', 'test').then(
    ({ redis }) => {
      redis.disconnect();
      throw new Error('connected');
    },
    (reason) => reason,
  );
  const { code, context, message } = error;
  return { code, setting: context.setting, message, inTime: performance.now() - from < WITHIN_MS };
}

const refused = (setting: string, step: RegExp) => ({
  code: 'REDIS_UNSUITABLE',
  setting,
  message: expect.stringMatching(step),
  inTime: true,
});

describe('a refusal of Redis', () => {
  test('names the setting for a wrong or missing password and an unknown user', async () => {
    const place = own.url.replace('redis://', '');
    const correct = /^Redis at \S+ refuses this user or password\. Correct them in SHELLFLEET_REDIS_URL: [^\n]*$/;
    expect(await refusal(`redis://known:wrong-secret@${place}`)).toEqual(refused('requirepass', correct));
    expect(await refusal(`redis://unknown:wrong-secret@${place}`)).toEqual(refused('requirepass', correct));
    await using closed = await startOwnRedis();
    await closed.redis.config('SET', 'requirepass', 'right');
    expect(await refusal(closed.url)).toEqual(
      refused('requirepass', /needs a password\. Name it in SHELLFLEET_REDIS_URL/),
    );
    expect(JSON.stringify(await refusal(closed.url.replace('//', '//:wrong-secret@')))).not.toContain('wrong-secret');
  });

  test('names the setting if a Cluster is given as a server, or the reverse', async () => {
    await using node = await startOwnRedis('--cluster-enabled', 'yes', '--cluster-port', String(await freePort()));
    await node.redis.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
    expect(await refusal(node.url)).toEqual(refused('cluster-enabled', /Set SHELLFLEET_REDIS_URL to redis\+cluster:/));
    const asCluster = own.url.replace('redis:', 'redis+cluster:');
    expect(await refusal(asCluster)).toEqual(
      refused('cluster-enabled', /is no Cluster\. Set SHELLFLEET_REDIS_URL to redis:/),
    );
  });

  test('names the setting for protected mode and too many clients', async () => {
    await using closed = await startFakeRedis({}, '-DENIED Redis is running in protected mode because …');
    expect(await refusal(closed.url)).toEqual(refused('protected-mode', /Give it a password \(requirepass\)/));
    await using full = await startOwnRedis();
    await full.redis.config('SET', 'maxclients', 1);
    expect(await refusal(full.url)).toEqual(refused('maxclients', /Raise maxclients/));
  });

  test('names the address of a server that is no Redis', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const step =
      /is no Redis: the address answers, but .* Set SHELLFLEET_REDIS_URL \(--redis-url\) to the address of a Redis/;
    try {
      expect(await refusal(`redis://127.0.0.1:${port}`)).toEqual(refused('port', step));
    } finally {
      server.close();
    }
  });

  test('names the sentinels that do not reply', async () => {
    const down = `127.0.0.1:${await freePort()}`;
    expect(await refusal(`redis+sentinel://${down}/mine`)).toEqual({
      code: 'QUEUE_UNAVAILABLE',
      setting: undefined,
      message: expect.stringContaining(`failed to connect to sentinel ${down}`),
      inTime: true,
    });
  });
});

describe('a worker', () => {
  test('names the command that its Redis user may not run', async () => {
    const redisUrl = own.url.replace('//', '//limited:right@');
    await expect(startFleet({ redisUrl })).rejects.toThrow(
      /does not let this user run ZADD \S+:hosts 1 x\. Give it the worker's ACL/,
    );
  });

  test('warns about a Redis without an append-only file, with the setting', async () => {
    await using stack = await startFleet({ redisUrl: own.url });
    expect(stack.workers[0]?.log).toMatch(/"level":"warn".*"setting":"appendonly".*"msg":"redis.not-persistent"/);
  });
});
