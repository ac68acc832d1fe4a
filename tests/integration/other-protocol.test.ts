import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fleet } from '@shellfleet/client';
import {
  fleetIdentityKey,
  fleetKeys,
  hostKeys,
  PROTOCOL_VERSION,
  recordKey,
  sessionKeys,
  tenantKeys,
  toFleetIdentity,
  toKeyspace,
} from '@shellfleet/protocol';
import { connectRedis, findKeysOfFleet, readFleetIdentity, removeKeysOfFleet } from '@shellfleet/redis';
import { joinOwnFleet } from '@shellfleet/worker/test-support';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newNamespace } from '../support/mailbox-session.ts';
import { startOwnCluster } from '../support/own-cluster.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';
import { runCli } from '../support/run-cli.ts';

const ID = 'aaaaaaaaaaaa';
const OTHER_ID = 'bbbbbbbbbbbb';
const OLDER = PROTOCOL_VERSION - 1;
const sealKey = randomBytes(32).toString('base64');

let own: OwnRedis;
let namespace: string;
let directory: string;
beforeAll(async () => {
  own = await startOwnRedis();
  directory = await mkdtemp(join(tmpdir(), 'sf-protocol-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
  await own?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  namespace = newNamespace();
});

const connect = () => Fleet.connect({ redisUrl: own.url, namespace, sealKeys: [sealKey] });

/** Writes keys of a fleet: two sessions with three commands, and its audit. Returns those that are not the audit's. */
async function plant(redis: Redis, fleetId = ID, ns = namespace): Promise<string[]> {
  const keyspace = toKeyspace(ns, fleetId);
  const [one, two] = [sessionKeys(keyspace, 'default', 'one'), sessionKeys(keyspace, 'acme', 'two')];
  const records = [recordKey(one, 'A'), recordKey(one, 'B'), recordKey(two, 'C')];
  const keys = [
    one.state,
    one.stream,
    two.state,
    ...records,
    tenantKeys(keyspace, 'default').index,
    fleetKeys(keyspace).hosts,
  ];
  for (const key of [...keys, fleetKeys(keyspace).audits, hostKeys(keyspace, 'h1').audit]) await redis.set(key, 'x');
  return keys.sort();
}

const allKeys = async () => (await own.redis.keys(`${namespace}:*`)).sort();

describe('keys of another version of the protocol', () => {
  test.each([
    ['older', `${ID} ${OLDER}`, OLDER],
    ['older than the first that is recorded', ID, 4],
    ['newer', `${ID} ${PROTOCOL_VERSION + 1}`, PROTOCOL_VERSION + 1],
  ])('refuse clients, hosts and the command line with both versions, when they are %s', async (_, identity, theirs) => {
    await own.redis.set(fleetIdentityKey(namespace), identity);
    await plant(own.redis);
    const before = await allKeys();
    const refusal = { code: 'PROTOCOL_MISMATCH', context: { namespace, theirs, ours: PROTOCOL_VERSION } };
    await expect(connect()).rejects.toMatchObject(refusal);
    for (const kept of ['new', 'kept']) {
      const host = () => joinOwnFleet(own.redis, namespace, join(directory, namespace, kept), 'the test');
      if (kept === 'kept') {
        await own.redis.set(fleetIdentityKey(namespace), toFleetIdentity(ID));
        await host();
        await own.redis.set(fleetIdentityKey(namespace), identity);
      }
      await expect(host()).rejects.toMatchObject(refusal);
    }
    const { exitCode, stderr } = await runCli({ own, namespace, sealKey } as never, ['ps']);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain(
      `have version ${theirs} of the protocol, and this process has version ${PROTOCOL_VERSION}`,
    );
    expect(await allKeys()).toEqual(before);
    expect(await own.redis.get(fleetIdentityKey(namespace))).toBe(identity);
  });

  test('end the waits of a client that was connected before, when it looks again', async () => {
    await own.redis.set(fleetIdentityKey(namespace), toFleetIdentity(ID));
    await using fleet = await connect();
    const waiting = (await (await fleet.session('s')).submit('true')).result().catch((error: unknown) => error);
    await own.redis.set(fleetIdentityKey(namespace), `${ID} ${PROTOCOL_VERSION + 1}`);
    await own.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    expect(await waiting).toMatchObject({ code: 'PROTOCOL_MISMATCH' });
    await expect(fleet.hosts()).rejects.toMatchObject({ code: 'PROTOCOL_MISMATCH' });
  });
});

describe('removeKeysOfFleet', () => {
  test('removes all keys of a fleet except its audit, and no other keys', async () => {
    await own.redis.set(fleetIdentityKey(namespace), `${ID} ${OLDER}`);
    const planted = await plant(own.redis);
    const others = [...(await plant(own.redis, OTHER_ID)), ...(await plant(own.redis, ID, `${namespace}-2`))];
    const before = await own.redis.keys('*');
    const found = await findKeysOfFleet(own.redis, namespace, ID);
    expect({ ...found, byNode: [...found.byNode.values()].flat().sort() }).toEqual({
      ...{ sessions: 2, commands: 3, hosts: [], byNode: planted },
    });
    await removeKeysOfFleet(own.redis, { namespace, fleetId: ID }, found);
    const after = await own.redis.keys('*');
    expect(before.filter((key) => !after.includes(key)).sort()).toEqual(planted);
    expect(await own.redis.exists(...others)).toBe(others.length);
    expect(await readFleetIdentity(own.redis, namespace)).toEqual({ fleetId: ID, protocol: PROTOCOL_VERSION });
    await (await connect()).close();
  });

  test('finds the hosts that are up', async () => {
    await own.redis.set(hostKeys(toKeyspace(namespace, ID), 'h-1.x').alive, '{}');
    expect((await findKeysOfFleet(own.redis, namespace, ID)).hosts).toEqual(['h-1.x']);
  });

  test('reaches every node of a Cluster', async () => {
    await using cluster = await startOwnCluster(3);
    const { redis } = await connectRedis(cluster.url, 'producer', 'test');
    const planted = await plant(redis);
    const found = await findKeysOfFleet(redis, namespace, ID);
    expect([...found.byNode.values()].flat().sort()).toEqual(planted);
    await removeKeysOfFleet(redis, { namespace, fleetId: ID }, found);
    expect((await findKeysOfFleet(redis, namespace, ID)).sessions).toBe(0);
    expect((await Promise.all(cluster.nodes.map((node) => node.redis.dbsize()))).reduce((a, b) => a + b, 0)).toBe(3);
    redis.disconnect();
  });
});
