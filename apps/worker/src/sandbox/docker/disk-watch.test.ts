import { describe, expect, test } from 'vitest';
import { DiskWatch } from './disk-watch.ts';

const MIB = 2 ** 20;

/** Creates a disk of 10,000 MiB, of which at least 500 must be free. A container may use 800. */
function createDisk() {
  const sizes = new Map<string, number>();
  const measured: string[] = [];
  const ended: string[] = [];
  const disk = { otherMib: 0, nowMs: 1_000_000, measuringMs: 0, isVisible: true };
  const usedMib = () => disk.otherMib + [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const watch = new DiskWatch({
    bounds: { limitBytes: 800 * MIB, leastFreeBytes: 500 * MIB },
    readSpace: async () =>
      disk.isVisible ? { freeBytes: (10_000 - usedMib()) * MIB, totalBytes: 10_000 * MIB } : undefined,
    containers: () => [...sizes.keys()],
    measure: async (id) => {
      measured.push(id);
      disk.nowMs += disk.measuringMs;
      const mib = sizes.get(id);
      return mib === undefined ? undefined : mib * MIB;
    },
    end: async (id) => {
      ended.push(id);
      sizes.delete(id);
    },
    logger: undefined,
    now: () => disk.nowMs,
  });
  const look = async (laterMs = 500) => {
    disk.nowMs += laterMs;
    await watch.measureIfDue();
    return measured.splice(0);
  };
  return { disk, sizes, ended, watch, look };
}

describe('the disk watch', () => {
  test('DISK-1: measures when the free space has fallen by an eighth of the limit', async () => {
    const { sizes, watch, look } = createDisk();
    sizes.set('a', 10).set('b', 10);
    expect(await look()).toEqual(['a', 'b']);
    sizes.set('a', 100);
    expect(await look()).toEqual([]);
    sizes.set('a', 110);
    expect(await look()).toEqual(['a', 'b']);
    expect(await look()).toEqual([]);
    expect(await look(300_000)).toEqual(['a', 'b']);
    expect(watch.sizeOf('a')).toBe(110 * MIB);
  });

  test('DISK-1: measures every 30 s while tenants have quotas of disk', async () => {
    const { sizes, watch, look } = createDisk();
    sizes.set('a', 10);
    await look();
    watch.hasQuotas = true;
    expect(await look(29_999)).toEqual([]);
    expect(await look(1)).toEqual(['a']);
  });

  test('DISK-1: measures for at most a quarter of the time', async () => {
    const { disk, sizes, look } = createDisk();
    sizes.set('a', 10);
    disk.measuringMs = 2_000;
    expect(await look()).toEqual(['a']);
    sizes.set('a', 500);
    expect(await look(7_000)).toEqual([]);
    expect(await look(1_000)).toEqual(['a']);
  });

  test('DISK-1: measures once a minute when the disk is not visible', async () => {
    const { disk, sizes, ended, watch, look } = createDisk();
    disk.isVisible = false;
    sizes.set('a', 10);
    expect(await look()).toEqual(['a']);
    sizes.set('a', 801);
    expect(await look(59_000)).toEqual([]);
    expect(await look(1_000)).toEqual(['a']);
    expect([ended, watch.problem]).toEqual([['a'], undefined]);
  });

  test('DISK-2: ends only the container that exceeds its limit', async () => {
    const { sizes, ended, look } = createDisk();
    await look();
    sizes.set('a', 800).set('b', 801);
    await look();
    expect(ended).toEqual(['b']);
  });

  test('DISK-2: ends the fastest growing containers until the disk is no longer short', async () => {
    const { disk, sizes, ended, watch, look } = createDisk();
    sizes.set('large', 700).set('writes', 20).set('small', 5);
    await look();
    disk.otherMib = 8_600;
    sizes.set('writes', 300);
    await look(2_000);
    expect(ended).toEqual(['writes']);
    disk.otherMib = 9_000;
    sizes.set('small', 20);
    await look(2_000);
    expect(ended).toEqual(['writes']);
    expect(watch.problem).toBe(
      "The Docker engine's disk has 280 MiB free of 10000 MiB; SHELLFLEET_MIN_FREE_DISK is 500 MiB.",
    );
    disk.otherMib = 0;
    await look();
    expect(watch.problem).toBe(undefined);
  });
});
