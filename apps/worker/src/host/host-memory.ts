import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { leastFree, readMemory, type Space } from './free-space.ts';

/** Memory of the host at one time. */
export interface MemoryReading extends Space {
  /** Processes of the machine that the kernel has killed for memory. Undefined if it does not count them. */
  kills: number | undefined;
}

/** Number of readings that are remembered, which a host takes every second. */
const REMEMBERED = 4;
/** Memory that a host keeps free by default. */
export const USUAL_FREE_MEMORY_BYTES = 256 * 2 ** 20;

/** Measures the memory of the host, and finds out whether the kernel killed processes because it ran out. */
export class HostMemory {
  readonly #read: () => Promise<MemoryReading>;
  readonly #leastBytes: number | undefined;
  readonly #recent: MemoryReading[] = [];

  /** Without `leastBytes`, the host is short of memory below what it usually keeps free. */
  constructor(leastBytes?: number, read = () => readHostMemory()) {
    this.#leastBytes = leastBytes;
    this.#read = read;
  }

  async read(): Promise<MemoryReading> {
    const reading = await this.#read();
    this.#recent.push(reading);
    if (this.#recent.length > REMEMBERED) this.#recent.shift();
    return reading;
  }

  /** Returns whether the kernel has killed processes for the memory of the whole host in the last seconds. */
  async hasRunOut(): Promise<boolean> {
    await this.read();
    return hasRunOut(this.#recent, this.#leastBytes);
  }
}

/**
 * Returns whether the kernel killed processes between the first and the last reading because the memory of the host ran
 * out. It counts kills at the limit of a sandbox, too. So a kill counts only if the host was short of memory.
 */
export function hasRunOut(readings: readonly MemoryReading[], leastBytes: number | undefined): boolean {
  const [before, after] = [readings[0]?.kills, readings.at(-1)?.kills];
  if (before === undefined || after === undefined || after <= before) return false;
  return readings.some((reading) => reading.freeBytes < leastFree(reading, leastBytes, USUAL_FREE_MEMORY_BYTES));
}

/** Reads the files of the kernel below `root`. */
export async function readHostMemory(root = ''): Promise<MemoryReading> {
  const [memory, counters] = await Promise.all([
    readMemory(`${root}/proc/meminfo`),
    readFile(`${root}/proc/vmstat`, 'utf8').catch(() => ''),
  ]);
  const kills = /^oom_kill (\d+)$/m.exec(counters)?.[1];
  return { ...memory, kills: kills === undefined ? undefined : Number(kills) };
}

/**
 * Returns whether the engine reports a container as out of memory only at the container's own limit. With control
 * groups of version 2 it also does so when the memory of the host ran out.
 */
export const engineReportsLimitsOnly = (root = '') => !existsSync(`${root}/sys/fs/cgroup/cgroup.controllers`);
