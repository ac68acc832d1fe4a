import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fleet } from '@shellfleet/client';
import { fleetIdentityKey, toFleetIdentity } from '@shellfleet/protocol';
import { connectRedis, declareFleet, joinFleet } from '@shellfleet/redis';
import { joinOwnFleet } from '@shellfleet/worker/test-support';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newNamespace } from '../support/mailbox-session.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { until } from '../support/until.ts';

let own: OwnRedis;
let redis: Redis;
let directory: string;
beforeAll(async () => {
  own = await startOwnRedis();
  redis = own.redis;
  directory = await mkdtemp(join(tmpdir(), 'sf-identity-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
  await own?.[Symbol.asyncDispose]();
});

const [A, B] = ['aaaaaaaaaaaa', 'bbbbbbbbbbbb'];
const sealKeys = [randomBytes(32).toString('base64')];
const connect = (namespace: string, database = 0) =>
  Fleet.connect({ redisUrl: `${own.url}/${database}`, namespace, sealKeys });
const host = (namespace: string, name = 'h1') => joinOwnFleet(redis, namespace, join(directory, name), 'the test');

describe('the identity of a fleet', () => {
  test('is the one that was declared first, even if many processes declare simultaneously', async () => {
    const namespace = newNamespace();
    const declared = await Promise.all([...Array(20).keys()].map(() => joinFleet(redis, namespace, 'host')));
    expect(new Set(declared.map((id) => toFleetIdentity(id)))).toEqual(
      new Set([await redis.get(fleetIdentityKey(namespace))]),
    );
  });

  test('comes from a known host, not from a new producer, after Redis lost the identity', async () => {
    const namespace = newNamespace();
    await redis.set(fleetIdentityKey(namespace), toFleetIdentity(A));
    expect(await host(namespace)).toBe(`${namespace}:${A}`);
    await redis.del(fleetIdentityKey(namespace));
    const connecting = connect(namespace);
    await until(
      () => redis.client('LIST') as Promise<string>,
      (clients) => clients.includes('shellfleet-producer-'),
    );
    await host(namespace);
    await (await connecting).close();
    expect(await redis.get(fleetIdentityKey(namespace))).toBe(toFleetIdentity(A));
  });

  test('is declared again by a producer after Redis lost it', async () => {
    const namespace = newNamespace();
    await redis.set(fleetIdentityKey(namespace), toFleetIdentity(A));
    await using fleet = await connect(namespace);
    await redis.del(fleetIdentityKey(namespace));
    await breakConnections();
    await until(
      () => redis.get(fleetIdentityKey(namespace)),
      (declared) => declared === toFleetIdentity(A),
    );
    expect(await fleet.hosts()).toEqual([]);
  });

  test('ends every wait and call of a producer when it changes', async () => {
    const namespace = newNamespace();
    await redis.set(fleetIdentityKey(namespace), toFleetIdentity(A));
    await using fleet = await connect(namespace);
    const session = await fleet.session('s');
    const waiting = (await session.submit('true')).result().catch((error: unknown) => error);
    await redis.set(fleetIdentityKey(namespace), toFleetIdentity(B));
    await breakConnections();
    const conflict = { code: 'FLEET_CONFLICT', context: { namespace, fleetId: A, declared: B } };
    expect(await waiting).toMatchObject(conflict);
    await expect(fleet.hosts()).rejects.toMatchObject(conflict);
    await using anew = await connect(namespace);
    expect(await anew.attach('s')).toBeUndefined();
  });

  test("is stored in the host's directory, and keeps the host from another fleet", async () => {
    const namespace = newNamespace();
    await redis.set(fleetIdentityKey(namespace), toFleetIdentity(A));
    await host(namespace, 'kept');
    const path = join(directory, 'kept', `${namespace}.id`);
    expect(await readFile(path, 'utf8')).toBe(`${A}\n`);
    await redis.set(fleetIdentityKey(namespace), toFleetIdentity(B));
    await expect(host(namespace, 'kept')).rejects.toMatchObject({
      code: 'FLEET_CONFLICT',
      message: expect.stringMatching(new RegExp(`belongs to the fleet ${A} .*has the fleet ${B} .*prune --fleet ${A}`)),
      context: { path, fleetId: A, declared: B, namespace, place: 'the test' },
    });
    expect(await redis.get(fleetIdentityKey(namespace))).toBe(toFleetIdentity(B));
    // A host that was never part of a fleet joins the fleet whose identity is in Redis.
    expect(await host(namespace, 'new')).toBe(`${namespace}:${B}`);
  });

  test('separates two fleets of one namespace in two databases of one Redis', async () => {
    const namespace = newNamespace();
    await redis.set(fleetIdentityKey(namespace), toFleetIdentity(A));
    const { redis: other } = await connectRedis(`${own.url}/1`, 'producer', 'declares');
    await declareFleet(other, namespace, B);
    other.disconnect();
    await using one = await connect(namespace, 0);
    await using two = await connect(namespace, 1);
    for (const fleet of [one, two]) await (await fleet.session('same')).submit('true');
    const inboxes = async () =>
      ((await redis.pubsub('CHANNELS', `${namespace}:*`)) as string[]).map((name) => name.split(':')[1]).sort();
    expect(new Set(await until(inboxes, (found) => found.length >= 2))).toEqual(new Set([A, B]));
  });
});

/** Ends all connections, as a restart of Redis does, but keeps the data. */
async function breakConnections(): Promise<void> {
  await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
}
