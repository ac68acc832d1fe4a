import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Fleet, isShellfleetError } from '@shellfleet/client';
import {
  accessKeys,
  approvalKeys,
  diskUseKey,
  fleetIdentityKey,
  fleetKeys,
  hostKeys,
  inboxChannel,
  quotasKey,
  sessionKeys,
  sessionsQueue,
} from '@shellfleet/protocol';
import { openRedis, parseRedisUrl } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisImage, redisVersions } from '../support/redis-images.ts';
import { type RedisProcess, startRedisProcess } from '../support/redis-process.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { tryCommand } from '../support/try-command.ts';
import { until } from '../support/until.ts';

// Promise: with TLS and the access lists of docs/operations.md, worker, producer and reader can do their own part only.

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url));
const PASSWORD = 'a password/with@signs';

let server: RedisProcess;
let stack: TestFleet;
const opened: { redis: Redis }[] = [];

const urlOf = (user: string, parameters: string) =>
  `rediss://${user}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${server.port}?${parameters}`;
const certificates = `ca=${fixture('ca.pem')}&cert=${fixture('client.pem')}&key=${fixture('client-key.pem')}`;

function tryAs(user: string, ...command: readonly string[]): Promise<string> {
  const redis = openRedis(parseRedisUrl(urlOf(user, certificates)), 'producer', `try-${user}`);
  opened.push({ redis });
  return tryCommand(redis, command);
}

const connect = (user: string) =>
  Fleet.connect({ redisUrl: urlOf(user, certificates), namespace: stack.namespace, sealKeys: [stack.sealKey] });

describe.each(redisVersions)('Redis with TLS and users: %s', (version) => {
  beforeAll(async () => {
    const tlsOf = async (name: string) => ({
      ca: await readFile(fixture('ca.pem'), 'utf8'),
      cert: await readFile(fixture(`${name}.pem`), 'utf8'),
      key: await readFile(fixture(`${name}-key.pem`), 'utf8'),
    });
    const files = ['--tls-ca-cert-file', fixture('ca.pem'), '--tls-cert-file', fixture('node.pem')];
    server = await startRedisProcess({
      image: await redisImage(version),
      directories: [fixture('')],
      settings: ['--save', '', ...files, '--tls-key-file', fixture('node-key.pem')],
      client: { tls: await tlsOf('client') },
    });
    // The access lists are those of the document, with the namespace of this fleet.
    const document = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8');
    const lines = document.split('\n').filter((line) => line.startsWith('ACL SETUSER '));
    expect(lines.map((line) => line.split(' ')[2])).toEqual(['worker', 'producer', 'api', 'approver', 'reader']);
    const setUsers = async (namespace: string) => {
      for (const line of lines) {
        const words = line.replaceAll(/shellfleet(?=[:/])/g, namespace).split(' ');
        await server.redis.call('ACL', ...words.slice(1).map((word) => word.replace(/^>.*/, `>${PASSWORD}`)));
      }
    };
    stack = await startFleet({ redisUrl: urlOf('worker', certificates), onNamespace: setUsers });
  });
  afterAll(async () => {
    for (const { redis } of opened) redis.disconnect();
    await stack?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  test('serves worker and client for all that they do over TLS', async () => {
    const fleet = await connect('producer');
    const session = await fleet.session('s', { labels: { a: 'b' } });
    const shown: string[] = [];
    await session.run('x=1; echo out', { onOutput: ({ text }) => shown.push(text) });
    await session.files.write('/workspace/f', Buffer.from('bytes'));
    const reader = await session.submit('cat; cat f', { stdin: { open: true }, idempotencyKey: 'k' });
    await reader.write('typed ');
    await reader.closeStdin();
    const sleeping = await session.submit('sleep 600');
    const [read] = [await reader.result(), await sleeping.cancel()];
    const log: string[] = [];
    for await (const { text } of reader.output()) log.push(text);
    const hosts = await fleet.hosts();
    const listed = [];
    for await (const { id } of fleet.sessions()) listed.push(id);
    expect([shown.join(''), read.stdout, log.join(''), (await sleeping.result()).outcome, listed]).toEqual([
      'out\n',
      'typed bytes',
      'typed bytes',
      'cancellation',
      ['s'],
    ]);
    expect(hosts).toMatchObject([{ id: 'h1', state: 'up' }]);
    await session.close();
    await fleet.batches.submit([{ id: 'one', script: 'true' }], { name: 'detached' });
    expect(await Array.fromAsync(fleet.batches.attach('detached'))).toMatchObject([{ id: 'one', passed: true }]);
    await fleet.batches.remove('detached');
    await fleet.close();
  });

  test('lets a producer look at all tenants, and cordon, drain and remove hosts', async () => {
    const keys = fleetKeys(stack.keyspace);
    await server.redis.zadd(keys.hosts, Date.now(), 'gone');
    await using fleet = await connect('producer');
    // The host takes the name of a queue from there, and forgets it because nothing waits.
    const look = async () => {
      await server.redis.lpush(keys.noted, 'default', sessionsQueue('docker', 'default'));
      const [load, tenants] = [await fleet.load(), await fleet.tenants()];
      return [load.hosts.length, ...tenants.map(({ name }) => name)].join(' ');
    };
    await until(look, (seen) => seen === '2 default');
    expect(await Array.fromAsync(fleet.sessions({ allTenants: true, all: true }))).toContainEqual(
      expect.objectContaining({ id: 's', tenant: 'default' }),
    );
    await fleet.cordonHost('h1');
    await until(
      () => fleet.hosts(),
      (hosts) => hosts.some((host) => host.cordoned === true && host.problems !== undefined),
    );
    await fleet.uncordonHost('h1');
    await fleet.drainHost('h1');
    await fleet.drainHost('h1', { undo: true });
    await fleet.removeHost('gone');
    expect((await fleet.hosts()).map(({ id }) => id)).toEqual(['h1']);
    expect(await fleet.hostImages('h1')).toEqual(expect.any(Array));
    await until(
      () => fleet.hosts(),
      (hosts) => hosts.every((host) => host.state === 'up' && host.problems === undefined),
    );
  });

  test('lets a producer follow all sessions, and tells a reader what it lacks', async () => {
    const [producer, reader] = await Promise.all([connect('producer'), connect('reader')]);
    const session = await producer.session('followed');
    await session.run(':');
    const after = String(Date.now() - 60_000);
    for (const allTenants of [true, false])
      for await (const event of producer.events({ allTenants, after }))
        if ('sessionId' in event && event.sessionId === 'followed') break;
    await expect(reader.events({ allTenants: true }).next()).rejects.toMatchObject({
      code: 'REDIS_UNSUITABLE',
      message: expect.stringContaining(`\`&${stack.namespace}:????????????:feed:*:*\``),
      context: { setting: 'acl' },
    });
    await session.close();
    await Promise.all([producer.close(), reader.close()]);
  });

  test('lets a reader read Results and output, and not submit', async () => {
    const [producer, fleet] = await Promise.all([connect('producer'), connect('reader')]);
    const command = await (await producer.session('read')).submit('echo seen');
    const same = await fleet.command(command.id);
    expect((await same.result()).stdout).toBe('seen\n');
    const text: string[] = [];
    for await (const chunk of same.output()) text.push(chunk.text);
    expect(text.join('')).toBe('seen\n');
    const submitting = fleet.session('read').then((session) => session.run('echo never'));
    const refused = await submitting.catch((error: unknown) => error);
    expect(isShellfleetError(refused) && refused.message).toMatch(/NOPERM|no permissions/);
    await Promise.all([producer.close(), fleet.close()]);
  });

  test('lets an approver see and answer questions, and revoke approvals', async () => {
    const [producer, approver] = await Promise.all([connect('producer'), connect('approver')]);
    const session = await producer.session('asks', { approval: 'unless-trusted' });
    const command = await session.submit('touch /tmp/asked');
    const [question] = await until(
      () => approver.approvals.list(),
      (found) => found.length === 1,
    );
    await approver.approvals.approve(question?.id ?? '', { scope: 'session' });
    expect(await command.result()).toMatchObject({ outcome: 'success' });
    await approver.approvals.revoke(question?.id ?? '');
    expect(await approver.approvals.list({ state: 'approved' })).toEqual([]);
    await session.close();
    await Promise.all([producer.close(), approver.close()]);
  });

  test('lets the user of a server make, find and revoke API keys', async () => {
    await using fleet = await connect('api');
    const { key, id } = await fleet.keys.create({ name: 'ci', scopes: ['read'] });
    await fleet.keys.noteUse(id);
    expect(await fleet.keys.find(key)).toMatchObject({ id, tenant: 'default' });
    await fleet.keys.revoke(id);
    expect(await fleet.keys.list()).toEqual([]);
  });

  test('lets no user do another role’s work or access keys outside of the namespace', async () => {
    const { keyspace: namespace } = stack;
    const fleet = fleetKeys(namespace);
    const keys = sessionKeys(namespace, 'default', 's');
    const host = hostKeys(namespace, 'h1');
    const { apiKeys, apiKeyUses } = accessKeys(namespace);
    const tries: [user: string, ...command: string[]][] = [
      ['reader', 'SET', `${keys.prefix}x`, '1'],
      ['reader', 'DEL', keys.state],
      ['reader', 'EVAL', 'return 1', '0'],
      ['reader', 'PUBLISH', keys.feed, '1'],
      ['reader', 'PUBLISH', inboxChannel(namespace, 'default', 'p'), 'a b c'],
      ['reader', 'SUBSCRIBE', inboxChannel(namespace, 'default', 'p')],
      ['approver', 'SET', `${keys.prefix}x`, '1'],
      ['approver', 'HSET', approvalKeys(namespace, 'default').decided, 'a', 'b'],
      ['approver', 'DEL', approvalKeys(namespace, 'default').answers],
      ['approver', 'SET', `${approvalKeys(namespace, 'default').prefix}grant:x`, '1'],
      ['approver', 'XADD', keys.stream, '*', 'a', 'b'],
      ['approver', 'PUBLISH', keys.feed, '1'],
      ['approver', 'EVAL', 'return 1', '0'],
      ['producer', 'HSET', host.audit, 'default', '{}'],
      ['producer', 'XADD', fleet.auditRecords, '*', 'c', 'h1 b default'],
      ['producer', 'XTRIM', fleet.auditRecords, 'MAXLEN', '0'],
      ['producer', 'HSET', fleet.auditHeads, 'h1 b default', '{}'],
      ['producer', 'DEL', fleet.auditRemoved],
      ['approver', 'XADD', fleet.auditRecords, '*', 'c', 'h1 b default'],
      ['reader', 'DEL', fleet.auditHeads],
      ['producer', 'SET', host.alive, '{}'],
      ['producer', 'SET', fleetIdentityKey(stack.namespace), '0'.repeat(12)],
      ['producer', 'SET', host.boot, 'x'],
      ['producer', 'INCR', fleet.fence],
      ['producer', 'HSET', fleet.owners, 'default:s', '999 evil'],
      ['producer', 'ZADD', fleet.hosts, '1', 'evil'],
      ['producer', 'HSET', fleet.configuration, 'revision', '1'],
      ['producer', 'SET', quotasKey(namespace, 'default'), '{}'],
      ['producer', 'SET', diskUseKey(namespace, 'default'), '0'],
      ['producer', 'GET', 'other:key'],
      ['producer', 'FLUSHALL'],
      ['producer', 'KEYS', '*'],
      ['producer', 'PSUBSCRIBE', '*'],
      ['producer', 'PSUBSCRIBE', 'other:????????????:feed:*:*'],
      ['worker', 'SET', 'other:key', '1'],
      ['worker', 'CONFIG', 'SET', 'maxmemory', '1'],
      ['worker', 'FLUSHALL'],
      ['worker', 'ACL', 'LIST'],
      ['worker', 'SCRIPT', 'FLUSH'],
      ...['worker', 'producer', 'approver', 'reader'].flatMap((user): typeof tries => [
        [user, 'HGET', apiKeys, 'id'],
        [user, 'HSET', apiKeys, 'id', 'x'],
        [user, 'HDEL', apiKeyUses, 'id'],
      ]),
    ];
    const replies = await Promise.all(tries.map(async ([user, ...command]) => tryAs(user, ...command)));
    expect(tries.map(([user, ...command], index) => [user, command.join(' '), replies[index]])).toEqual(
      tries.map(([user, ...command]) => [user, command.join(' '), 'NOPERM']),
    );
  });

  test('fails in one line for an unknown authority and a user without permissions', async () => {
    await server.redis.acl(
      'SETUSER',
      'nobody',
      'on',
      `>${PASSWORD}`,
      '~*',
      '&*',
      '+@all',
      '-info',
      '-evalsha',
      '-script',
    );
    const failing = (redisUrl: string) =>
      Fleet.connect({ redisUrl, namespace: stack.namespace, sealKeys: [stack.sealKey] }).catch(
        (error: unknown) => error,
      );
    expect(
      await failing(urlOf('worker', `cert=${fixture('client.pem')}&key=${fixture('client-key.pem')}`)),
    ).toMatchObject({
      code: 'REDIS_UNSUITABLE',
      message: expect.stringMatching(/certificate that is not trusted.*[?]ca=/),
      context: { setting: 'tls' },
    });
    expect(await failing(urlOf('nobody', certificates))).toMatchObject({
      code: 'REDIS_UNSUITABLE',
      message: expect.stringMatching(/does not let this user do its part.*info/),
      context: { setting: 'acl' },
    });
  });
});
