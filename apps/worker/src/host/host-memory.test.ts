import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { engineReportsLimitsOnly, HostMemory, readHostMemory } from './host-memory.ts';

// The files of a kernel are laid out below a directory, because no test may use up the memory of its machine.

const MIB = 2 ** 20;
let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'host-memory-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function lay(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}
async function layMemory({ freeMib, kills }: { freeMib: number; kills?: number }): Promise<void> {
  await lay('proc/meminfo', `MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: ${freeMib * 1_024} kB\n`);
  await lay('proc/vmstat', `nr_free_pages 3\n${kills === undefined ? '' : `oom_kill ${kills}\n`}oom_kill_other 9\n`);
}

describe('the memory of a host', () => {
  test('is read with the number of processes that the kernel killed', async () => {
    await layMemory({ freeMib: 100, kills: 129 });
    expect(await readHostMemory(root)).toMatchObject({ freeBytes: 100 * MIB, kills: 129 });
    await layMemory({ freeMib: 100 });
    expect(await readHostMemory(root)).toMatchObject({ freeBytes: 100 * MIB, kills: undefined });
  });

  const PLENTY = 9_000;
  test.each([
    [
      'has run out when the kernel killed a process and little was free before',
      [
        [10, 1],
        [PLENTY, 2],
      ],
      true,
    ],
    [
      'has run out when the kernel killed a process and little is free',
      [
        [PLENTY, 1],
        [10, 2],
      ],
      true,
    ],
    [
      'has run out when that was a few seconds ago',
      [
        [PLENTY, 1],
        [10, 1],
        [PLENTY, 2],
        [PLENTY, 2],
      ],
      true,
    ],
    [
      'has not run out when that was long ago',
      [
        [10, 1],
        [PLENTY, 2],
        [PLENTY, 2],
        [PLENTY, 2],
        [PLENTY, 2],
      ],
      false,
    ],
    [
      'has not run out when a sandbox was at its limit',
      [
        [PLENTY, 1],
        [PLENTY, 2],
      ],
      false,
    ],
    [
      'has not run out without a kill',
      [
        [10, 1],
        [10, 1],
      ],
      false,
    ],
    ['has not run out, for all that is known, without a counter', [[10], [10]], false],
  ] as [string, [number, number?][], boolean][])('%s', async (_what, readings, expected) => {
    const memory = new HostMemory(undefined, () => readHostMemory(root));
    const last = readings.pop();
    for (const [freeMib, kills] of readings) {
      await layMemory({ freeMib, ...(kills !== undefined && { kills }) });
      await memory.read();
    }
    await layMemory({ freeMib: last?.[0] ?? 0, ...(last?.[1] !== undefined && { kills: last[1] }) });
    expect(await memory.hasRunOut()).toBe(expected);
  });

  test('is what the engine means only with control groups of version 2', async () => {
    expect(engineReportsLimitsOnly(root)).toBe(true);
    await lay('sys/fs/cgroup/cgroup.controllers', 'cpu memory\n');
    expect(engineReportsLimitsOnly(root)).toBe(false);
  });
});
