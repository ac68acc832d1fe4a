import { fleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { lossOf, Settling } from './settling.ts';

beforeEach(() => vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => vi.useRealTimers());

const LAST_BEAT = 900_000;

/** Creates the settling of host h1. `beats` are the last heartbeats of all hosts. */
function setUp(beats: Record<string, number>) {
  const state = { fails: false };
  const redis = {
    async zrange() {
      if (state.fails) throw new Error('no connection');
      return Object.entries(beats).flatMap(([host, at]) => [host, String(at)]);
    },
  };
  const onSettled = vi.fn();
  const settling = new Settling({ redis: redis as unknown as Redis, fleet: fleetKeys('ns'), hostId: 'h1', onSettled });
  return { settling, state, beats, onSettled };
}

describe('settling', () => {
  test('is not needed by a host that was never without Redis', () => {
    expect(setUp({}).settling.settled).toBe(true);
  });

  test('ends at once in a fleet of one host', async () => {
    const { settling, onSettled } = setUp({ h1: LAST_BEAT });
    await settling.begin(LAST_BEAT);
    expect([settling.settled, onSettled.mock.calls.length]).toEqual([true, 1]);
  });

  test('ends when every host that was up before has published a heartbeat', async () => {
    const { settling, beats } = setUp({ h1: LAST_BEAT, h2: LAST_BEAT + 100, h3: LAST_BEAT - 1_000 });
    void settling.begin(LAST_BEAT);
    await vi.advanceTimersByTimeAsync(1_000);
    beats.h2 = 1_001_000;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(settling.settled).toBe(false);
    beats.h3 = 1_002_000;
    await vi.advanceTimersByTimeAsync(200);
    expect(settling.settled).toBe(true);
  });

  test('waits 5 s for a silent host, but not for a host lost long before', async () => {
    const silent = setUp({ h2: LAST_BEAT });
    void silent.settling.begin(LAST_BEAT);
    await vi.advanceTimersByTimeAsync(4_999);
    expect(silent.settling.settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(silent.settling.settled).toBe(true);

    const lost = setUp({ h2: LAST_BEAT - 10_001 });
    await lost.settling.begin(LAST_BEAT);
    expect(lost.settling.settled).toBe(true);
  });

  test('takes 5 s when Redis has lost which hosts were up', async () => {
    const { settling } = setUp({ h1: 1_000_000 });
    void settling.begin(LAST_BEAT, true);
    await vi.advanceTimersByTimeAsync(4_999);
    expect(settling.settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(settling.settled).toBe(true);
  });

  test.each([
    [String(LAST_BEAT), 'nothing'],
    [String(LAST_BEAT + 1), 'nothing'],
    [String(LAST_BEAT - 1), 'newest'],
    [String(LAST_BEAT - 10_000), 'newest'],
    [String(LAST_BEAT - 10_001), 'hosts'],
    [null, 'hosts'],
  ])('concludes from the stored heartbeat %s what Redis has lost: %s', (beatAt, loss) => {
    expect(lossOf(beatAt, LAST_BEAT)).toBe(loss);
  });

  test('begins again when Redis goes away again, and ignores the first wait', async () => {
    const { settling, state, beats, onSettled } = setUp({ h2: LAST_BEAT });
    void settling.begin(LAST_BEAT);
    await vi.advanceTimersByTimeAsync(4_000);
    state.fails = true;
    void settling.begin(LAST_BEAT);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(settling.settled).toBe(false);
    state.fails = false;
    await vi.advanceTimersByTimeAsync(200);
    beats.h2 = 1_006_000;
    await vi.advanceTimersByTimeAsync(200);
    expect([settling.settled, onSettled.mock.calls.length]).toEqual([true, 1]);
  });
});
