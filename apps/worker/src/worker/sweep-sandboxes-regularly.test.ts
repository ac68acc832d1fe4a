import { fleetKeys } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { createGoneCheck, sweepSandboxesRegularly } from './sweep-sandboxes-regularly.ts';

describe('the sweep of sandboxes', () => {
  test('waits until the hosts have renewed what a Redis lost that was away', async () => {
    let swept = 0;
    const sandboxes = { problem: () => undefined, sweep: async () => (swept += 1) };
    const host = { sandboxes, kept: { refresh() {} }, fleet: fleetKeys('ns'), logger: { warn() {} } };
    const settling = { settled: false };
    const sweeps = sweepSandboxesRegularly(host as never, settling);
    await sweeps.now();
    expect(swept).toBe(0);
    settling.settled = true;
    await sweeps.now();
    expect(swept).toBe(1);
    await sweeps.close();
  });

  test('treats a host as gone only after ten minutes without it in the fleet', async () => {
    let [known, minutes] = [false, 0];
    const redis = { zscore: async () => (known ? '1' : null) };
    const isGone = createGoneCheck(
      { redis: redis as never, fleet: fleetKeys('ns') },
      undefined,
      () => minutes * 60_000,
    );
    const at = async (minute: number, isKnown: boolean) => {
      [minutes, known] = [minute, isKnown];
      return isGone('h1');
    };
    expect(await at(0, false)).toBe(false);
    expect(await at(9, false)).toBe(false);
    expect(await at(9.5, true)).toBe(false);
    expect(await at(10, false)).toBe(false);
    expect(await at(19, false)).toBe(false);
    expect(await at(20, false)).toBe(true);
  });
});
