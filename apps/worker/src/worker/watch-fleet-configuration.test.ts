import { fleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { watchFleetConfiguration } from './watch-fleet-configuration.ts';

describe('the configuration of a fleet', () => {
  test('is read whole only after it was replaced', async () => {
    const stored = {
      ...{ revision: '1', appliedBy: 'ada', appliedAt: '2030-01-01T00:00:00.000Z' },
      configuration: '{"tenants":[{"name":"a","weight":2}]}',
    };
    const hgetall = vi.fn(async () => ({ ...stored }));
    const hmget = async () => [stored.revision, stored.appliedAt];
    const redis = { hgetall, hmget } as unknown as Redis;
    const logger = pino({ level: 'silent' });
    const watch = await watchFleetConfiguration({ redis, fleet: fleetKeys('n'), logger }, () => {});
    await watch.look();
    expect([hgetall.mock.calls.length, watch.revision, watch.weights()]).toEqual([1, 1, { a: 2 }]);
    // Redis has lost the first one, so the numbers begin again.
    Object.assign(stored, { appliedAt: '2030-01-01T00:00:01.000Z', configuration: '{}' });
    await watch.look();
    expect([hgetall.mock.calls.length, watch.revision, watch.weights()]).toEqual([2, 1, {}]);
    await watch.close();
  });
});
