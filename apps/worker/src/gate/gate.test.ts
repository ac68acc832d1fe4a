import { availableParallelism } from 'node:os';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Gate, openGate } from './gate.ts';
import type { Room } from './read-room.ts';

const MIB = 2 ** 20;
const room: Room = {
  memory: { freeBytes: 1_000 * MIB, totalBytes: 8_000 * MIB, kills: 0 },
  disk: undefined,
  memoryPressure: undefined,
  ioPressure: 3,
};
const SHORT = 'The memory of the host has 100 MiB free of 8000 MiB; SHELLFLEET_MIN_FREE_MEMORY is 256 MiB.';
const onRoom = vi.fn();
let engineProblem: string | undefined;
let gate: Gate;

/** Takes a session that begins to open at once. */
async function take(): Promise<void> {
  gate.taken(Promise.resolve());
  await vi.advanceTimersByTimeAsync(0);
}

const setFree = (mib: number, kills = 0) => {
  room.memory = { freeBytes: mib * MIB, totalBytes: 8_000 * MIB, kills };
};

beforeEach(async () => {
  vi.useFakeTimers({ now: 0 });
  setFree(1_000);
  engineProblem = undefined;
  onRoom.mockReset();
  gate = await openGate({
    stateDirectory: '/state',
    thresholds: {
      leastFree: { diskBytes: undefined, memoryBytes: undefined },
      mostPressure: { memory: 20, io: 80 },
    },
    readRoom: async () => ({ ...room }),
    otherProblems: () => (engineProblem === undefined ? [] : [engineProblem]),
    logger: pino({ level: 'silent' }),
    onRoom,
    intervalMs: 1_000,
  });
});
afterEach(async () => {
  await gate.close();
  vi.useRealTimers();
});

describe('the gate of a host', () => {
  test('closes with a shortage, says since which refusal, and reports room again', async () => {
    expect([gate.admits() > 0, gate.describe().refusal]).toEqual([true, null]);
    setFree(100);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([gate.admits(), gate.problems()]).toEqual([0, [SHORT]]);
    expect(onRoom).not.toHaveBeenCalled();
    setFree(1_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(onRoom).toHaveBeenCalledOnce();
    expect(gate.admits()).toBeGreaterThan(0);
    expect(gate.describe()).toEqual({
      ...{ reason: null, refusal: { at: '1970-01-01T00:00:01.000Z', reason: SHORT }, opening: 0 },
      ...{ freeMemoryBytes: 1_000 * MIB, leastMemoryBytes: 256 * MIB, sessionBytes: 16 * MIB, ranOutAt: null },
      ...{ freeDiskBytes: null, memoryPressure: null, ioPressure: 3 },
    });
  });

  test('is closed while an engine makes no sandboxes', () => {
    engineProblem = 'The engine does not answer.';
    expect([gate.admits(), gate.problems(), gate.describe().reason]).toEqual([0, [engineProblem], engineProblem]);
  });

  test('counts what it took since memory was measured, and what is being opened', async () => {
    expect(gate.places()).toBe(47);
    let taken = 0;
    for (; gate.admits() > 0; taken += 1) await take();
    expect([taken, gate.places(), gate.problems()]).toEqual([47, 0, []]);
    const opening = Promise.withResolvers<void>();
    const opened = gate.limitOpening('docker', () => opening.promise);
    setFree(271);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([gate.admits(), gate.describe().opening]).toEqual([0, 1]);
    opening.resolve();
    await opened;
    await vi.advanceTimersByTimeAsync(1_000);
    expect([gate.admits(), gate.describe().opening]).toEqual([1, 0]);
  });

  test('pauses after kills for the memory of the host, and keeps more memory free', async () => {
    setFree(100);
    await vi.advanceTimersByTimeAsync(1_000);
    setFree(600, 2);
    await vi.advanceTimersByTimeAsync(1_000);
    const ranOut = 'The memory of the host ran out at 1970-01-01T00:00:02.000Z, and the kernel killed processes.';
    expect([gate.admits(), gate.problems(), gate.describe()]).toMatchObject([
      0,
      [],
      {
        ...{ reason: `${ranOut} It takes no session until 1970-01-01T00:00:12.000Z.`, leastMemoryBytes: 512 * MIB },
        ...{ sessionBytes: 32 * MIB, ranOutAt: '1970-01-01T00:00:02.000Z' },
      },
    ]);
    expect(gate.warnings()).toEqual([
      `${ranOut} It keeps 512 MiB free for now, and counts 32 MiB for each session that is being opened. Lower SHELLFLEET_SLOTS, or the sessions' limits.memoryBytes.`,
    ]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect([gate.admits(), gate.places()]).toEqual([3, 3]);
    setFree(400, 2);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(gate.problems()).toEqual([
      'The memory of the host has 400 MiB free of 8000 MiB; SHELLFLEET_MIN_FREE_MEMORY, raised since the kernel killed processes, is 512 MiB.',
    ]);
    // A session reports what no measurement showed.
    gate.ranOutOfMemory();
    expect(gate.describe()).toMatchObject({ leastMemoryBytes: 1_024 * MIB, sessionBytes: 64 * MIB });
    await vi.advanceTimersByTimeAsync(30 * 60_000);
    expect([gate.admits() > 0, gate.warnings(), gate.describe().leastMemoryBytes]).toEqual([true, [], 256 * MIB]);
  });

  test('is closed while many wait to be opened, and reports each that was opened', async () => {
    const first = Promise.withResolvers<void>();
    const rest = Promise.withResolvers<void>();
    const begun = [gate.limitOpening('docker', () => first.promise)];
    while (gate.admits() > 0) begun.push(gate.limitOpening('docker', () => rest.promise));
    expect(gate.describe().reason).toMatch(/^\d+ sessions of this host wait until others have been opened\.$/);
    first.resolve();
    await begun[0];
    expect(onRoom).toHaveBeenCalled();
    expect(gate.admits()).toBe(1);
    rest.resolve();
    await Promise.all(begun);
  });

  test('lets 20 Pods wait for their cluster at once, beside what it opens itself', async () => {
    const placed = Promise.withResolvers<void>();
    let pending = 0;
    const pods = Array.from({ length: 25 }, () =>
      gate.limitOpening('kubernetes', () => {
        pending += 1;
        return placed.promise;
      }),
    );
    await gate.limitOpening('docker', async () => {});
    expect([pending, gate.describe().opening]).toEqual([20, 25]);
    placed.resolve();
    await Promise.all(pods);
    expect([pending, gate.describe().opening]).toEqual([25, 0]);
  });

  test('stays open while Pods wait for their cluster, and others behind them', async () => {
    const placed = Promise.withResolvers<void>();
    const pods = Array.from({ length: 20 + 8 * availableParallelism() }, () =>
      gate.limitOpening('kubernetes', () => placed.promise),
    );
    setFree(300);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([gate.admits(), gate.describe().reason]).toEqual([3, null]);
    placed.resolve();
    await Promise.all(pods);
  });

  test('takes no more at once than may wait here, and further ones when those open', async () => {
    setFree(7_000);
    await vi.advanceTimersByTimeAsync(1_000);
    const begun = Promise.withResolvers<void>();
    const most = gate.admits();
    for (let taken = 0; taken < most; taken += 1) gate.taken(taken === 0 ? begun.promise : new Promise(() => {}));
    expect([most, gate.admits()]).toEqual([8 * availableParallelism(), 0]);
    begun.resolve();
    await vi.waitFor(() => expect(onRoom).toHaveBeenCalledOnce());
    expect(gate.admits()).toBe(1);
  });
});
