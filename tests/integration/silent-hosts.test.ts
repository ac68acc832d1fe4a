import { fleetKeys, hostKeys, type SessionKeys, sessionKeys } from '@shellfleet/protocol';
import { watchHosts } from '@shellfleet/worker';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { connectTestRedis, newNamespace, openSession, own } from '../support/mailbox-session.ts';
import { putIntoIndex } from '../support/put-into-index.ts';
import { until } from '../support/until.ts';

const silent = { warn() {}, info() {}, error() {} } as never;
const HOUR = 3_600_000;

/** Opens a session on a host whose heartbeat is valid for `aliveMs`. */
async function openOn(redis: Redis, namespace: string, host: string, aliveMs: number): Promise<SessionKeys> {
  const keys = sessionKeys(namespace, 't1', `on-${host}`);
  const fleet = fleetKeys(namespace);
  await putIntoIndex(redis, keys);
  await openSession(redis, keys);
  await own(redis, keys, host);
  await redis.zadd(fleet.hosts, Date.now(), host);
  await redis.set(hostKeys(namespace, host).alive, '{}', 'PX', aliveMs);
  return keys;
}

const watch = (redis: Redis, namespace: string, settling = { settled: true }) =>
  watchHosts({ redis, fleet: fleetKeys(namespace), retentionMs: HOUR, logger: silent }, settling, 20);

async function reportsIn(redis: Redis, keys: SessionKeys): Promise<number> {
  const entries = await redis.xrange(keys.stream, '-', '+');
  return entries.filter(([, fields]) => fields.includes('host.unreachable')).length;
}

describe('a silent host', () => {
  test('is reported to its sessions once by one of the watching hosts', async () => {
    await using connected = await connectTestRedis();
    const { redis } = connected;
    const namespace = newNamespace();
    const live = await openOn(redis, namespace, 'live', 60_000);
    const dead = await openOn(redis, namespace, 'dead', 200);
    const watches = [watch(redis, namespace), watch(redis, namespace)];
    await until(
      () => reportsIn(redis, dead),
      (count) => count > 0,
    );
    expect(await redis.exists(hostKeys(namespace, 'dead').alive)).toBe(0);
    // Another host goes silent. Once that is reported, both watches have checked the first host again.
    const later = await openOn(redis, namespace, 'later', 200);
    await until(
      () => reportsIn(redis, later),
      (count) => count > 0,
    );
    await Promise.all(watches.map((one) => one.close()));
    expect(await Promise.all([live, dead, later].map((keys) => reportsIn(redis, keys)))).toEqual([0, 1, 1]);
  });

  test('is not reported while the fleet settles', async () => {
    await using connected = await connectTestRedis();
    const { redis } = connected;
    const namespace = newNamespace();
    const dead = await openOn(redis, namespace, 'dead', 1);
    let asked = 0;
    const looking = watch(redis, namespace, {
      // The fleet is settled when the check begins, and no longer settled when the calls of the check return.
      get settled() {
        asked += 1;
        return asked === 1;
      },
    });
    await until(
      () => asked,
      (times) => times > 3,
    );
    await looking.close();
    expect(await reportsIn(redis, dead)).toBe(0);
    const again = watch(redis, namespace);
    await until(
      () => reportsIn(redis, dead),
      (count) => count === 1,
    );
    await again.close();
  });
});
