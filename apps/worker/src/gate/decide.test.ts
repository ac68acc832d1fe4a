import { describe, expect, test } from 'vitest';
import { findCrowd, findShortages, type Opening } from './decide.ts';
import type { Room } from './read-room.ts';
import type { Thresholds } from './reserve.ts';

const MIB = 2 ** 20;
const ROOMY: Room = {
  memory: { freeBytes: 1_000 * MIB, totalBytes: 8_000 * MIB, kills: 0 },
  disk: { freeBytes: 5_000 * MIB, totalBytes: 90_000 * MIB },
  memoryPressure: 0,
  ioPressure: 0,
};
const THRESHOLDS: Thresholds = {
  leastFree: { diskBytes: undefined, memoryBytes: undefined },
  mostPressure: { memory: 20, io: 80 },
};
const shortagesOf = (room: Partial<Room>, thresholds: Partial<Thresholds> = {}) =>
  findShortages('/state', { ...ROOMY, ...room }, { ...THRESHOLDS, ...thresholds });

describe('a shortage of the host', () => {
  test.each([
    [
      'memory below the usual least',
      { memory: { freeBytes: 255 * MIB, totalBytes: 8_000 * MIB, kills: 0 } },
      'The memory of the host has 255 MiB free of 8000 MiB; SHELLFLEET_MIN_FREE_MEMORY is 256 MiB.',
    ],
    [
      'disk below the usual least',
      { disk: { freeBytes: 1_023 * MIB, totalBytes: 90_000 * MIB } },
      'The disk of /state has 1023 MiB free of 90000 MiB; SHELLFLEET_MIN_FREE_DISK is 1024 MiB.',
    ],
    [
      'pressure on memory',
      { memoryPressure: 20.5 },
      'The processes of the host wait for its memory 20.5 % of the time; SHELLFLEET_MAX_MEMORY_PRESSURE is 20.',
    ],
    [
      'pressure on disks',
      { ioPressure: 81 },
      'The processes of the host wait for its disks 81 % of the time; SHELLFLEET_MAX_IO_PRESSURE is 80.',
    ],
  ])('is %s', (_what, room, sentence) => {
    expect(shortagesOf(room)).toEqual([sentence]);
  });

  test('is none with room, at the thresholds, or where nothing can be read', () => {
    expect(shortagesOf({})).toEqual([]);
    const memory = { freeBytes: 256 * MIB, totalBytes: 8_000 * MIB, kills: 0 };
    expect(shortagesOf({ memory, memoryPressure: 20, ioPressure: 80 })).toEqual([]);
    expect(shortagesOf({ disk: undefined, memoryPressure: undefined, ioPressure: undefined })).toEqual([]);
  });

  test("follows the operator's thresholds, and names every resource that is short", () => {
    const leastFree = { diskBytes: 6_000 * MIB, memoryBytes: 2_000 * MIB };
    expect(shortagesOf({}, { leastFree })).toHaveLength(2);
    expect(shortagesOf({ memoryPressure: 100 }, { mostPressure: { memory: 100, io: 100 } })).toEqual([]);
  });
});

describe('a crowd of sessions that are being opened', () => {
  const crowdOf = (opening: Partial<Opening>) =>
    findCrowd(ROOMY, { sessions: 0, waiting: 0, mostWaiting: 10, ...opening }, THRESHOLDS);

  test('counts with 16 MiB of memory each, in advance', () => {
    expect(crowdOf({ sessions: 46 })).toBeUndefined();
    expect(crowdOf({ sessions: 47 })).toBe(
      'The memory of the host has 1000 MiB free, of which 47 sessions that are being opened may take 752 MiB; SHELLFLEET_MIN_FREE_MEMORY is 256 MiB.',
    );
  });

  test('takes no further session while many wait for their turn', () => {
    expect(crowdOf({ waiting: 9 })).toBeUndefined();
    expect(crowdOf({ waiting: 10 })).toBe('10 sessions of this host wait until others have been opened.');
  });
});
