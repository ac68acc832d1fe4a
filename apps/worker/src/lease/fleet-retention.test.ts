import { fleetKeys, hostKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { refuseOtherRetention } from './fleet-retention.ts';

const fleet = fleetKeys('ns');
const DAY_MS = 86_400_000;

/** Fakes registered hosts, with the contents of their heartbeats; null for an expired one. */
function fakeRedis(hosts: Record<string, object | null>): Redis {
  const beats = new Map(
    Object.entries(hosts).map(([id, beat]) => [hostKeys('ns', id).alive, beat === null ? null : JSON.stringify(beat)]),
  );
  return { zrange: async () => Object.keys(hosts), get: async (key: string) => beats.get(key) ?? null } as never;
}

const beat = {
  ...{ slots: 1, free: 1, policies: [], version: '1', protocol: 1, boot: 'b', draining: false, defaultImage: 'i' },
};

describe('the retention of a fleet', () => {
  test.each([
    ['a live host with the same retention', { other: { ...beat, retentionMs: 5_000 } }, 5_000],
    ['a host whose heartbeat has expired', { other: null }, 5_000],
    ['the heartbeat of an earlier process of this host', { own: { ...beat, retentionMs: DAY_MS } }, 5_000],
    ['a live host that does not know the setting, under the default', { other: beat }, DAY_MS],
  ])('accepts %s', async (_who, hosts, retentionMs) => {
    await refuseOtherRetention(fakeRedis(hosts as never), fleet, 'own', retentionMs);
  });

  test("refuses a retention that differs from a live host's, and names the setting", async () => {
    const redis = fakeRedis({ gone: null, other: { ...beat, retentionMs: DAY_MS } });
    await expect(refuseOtherRetention(redis, fleet, 'own', 5_000)).rejects.toMatchObject({
      code: 'RETENTION_CONFLICT',
      message: expect.stringContaining('SHELLFLEET_RETENTION is 5000 ms here, but 86400000 ms on host other'),
      context: { hostId: 'other', retentionMs: DAY_MS },
    });
  });
});
