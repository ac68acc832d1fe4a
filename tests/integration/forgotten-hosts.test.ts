import { fleetKeys, hostKeys } from '@shellfleet/protocol';
import { startUpkeep } from '@shellfleet/worker';
import { describe, expect, test } from 'vitest';
import { connectTestRedis, newNamespace } from '../support/mailbox-session.ts';
import { until } from '../support/until.ts';

const HOUR = 3_600_000;
const silent = { warn() {}, info() {}, error() {} } as never;

describe('a host that was not seen for the retention', () => {
  test('is removed with its keys, while other hosts keep theirs', async () => {
    await using connected = await connectTestRedis();
    const { redis } = connected;
    const [namespace, elsewhere] = [newNamespace(), newNamespace()];
    const fleet = fleetKeys(namespace);
    const plant = async (of: string, host: string, seenAt: number, isAlive = false) => {
      const keys = hostKeys(of, host);
      await redis.zadd(fleetKeys(of).hosts, seenAt, host);
      await redis.xadd(keys.calls, '*', 'd', '{}');
      await redis.set(keys.drain, '1');
      if (isAlive) await redis.set(keys.alive, '{}', 'PX', 60_000);
    };
    await plant(namespace, 'gone', Date.now() - 2 * HOUR);
    await plant(namespace, 'away', Date.now() - HOUR / 2);
    await plant(namespace, 'clock-is-wrong', Date.now() - 2 * HOUR, true);
    await plant(elsewhere, 'gone', Date.now() - 2 * HOUR);
    const jobs = { has: async () => true, ensure: async () => {} } as never;
    const times = { intervalMs: 20, quietMs: 0, retentionMs: HOUR, keyPatienceMs: 0 };
    const upkeep = startUpkeep(
      { redis, fleet, hostId: 'h1', jobs, logger: silent, sealKeys: [], diskQuotas: () => [], ...times },
      { settled: true },
    );
    const known = await until(
      () => redis.zrange(fleet.hosts, '0', '-1'),
      (hosts) => hosts.length === 2,
    );
    await upkeep.close();
    expect(known.sort()).toEqual(['away', 'clock-is-wrong']);
    const left = (of: string, host: string) => redis.exists(hostKeys(of, host).calls, hostKeys(of, host).drain);
    expect(await Promise.all(['gone', 'away', 'clock-is-wrong'].map((host) => left(namespace, host)))).toEqual([
      0, 2, 2,
    ]);
    expect(await left(elsewhere, 'gone')).toBe(2);
  });
});
