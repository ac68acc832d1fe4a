import { setTimeout as delay } from 'node:timers/promises';
import { fleetKeys } from '@shellfleet/protocol';
import { startUpkeep } from '@shellfleet/worker';
import { describe, expect, test } from 'vitest';
import { connectTestRedis, newNamespace } from '../support/mailbox-session.ts';
import { until } from '../support/until.ts';

const INTERVAL_MS = 1_000;

describe('upkeep', () => {
  test('stays with one worker when the next round is due, until that one stops', async () => {
    await using connected = await connectTestRedis();
    const { redis } = connected;
    const fleet = fleetKeys(newNamespace());
    /** Hosts that did a round each. */
    const rounds: string[] = [];
    const start = (hostId: string) =>
      startUpkeep(
        {
          ...{ redis, fleet, hostId, jobs: {} as never, logger: { warn() {}, info() {} } as never, sealKeys: [] },
          ...{ intervalMs: INTERVAL_MS, quietMs: 0, retentionMs: 3_600_000, keyPatienceMs: 0 },
          diskQuotas() {
            rounds.push(hostId);
            return [];
          },
        },
        { settled: true },
      );
    const [first, second] = [start('h1'), start('h2')];
    // From here on, the test begins the rounds.
    await Promise.all([first.close(), second.close()]);
    await first.now();
    await delay(0.95 * INTERVAL_MS);
    await second.now();
    expect(rounds).toEqual(['h1']);
    await until(
      () => second.now().then(() => rounds),
      (hosts) => hosts.includes('h2'),
    );
  });
});
