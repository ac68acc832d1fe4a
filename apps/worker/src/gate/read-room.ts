import { readFile } from 'node:fs/promises';
import { readDiskSpace, type Space } from '../host/free-space.ts';
import type { HostMemory, MemoryReading } from '../host/host-memory.ts';

/** What a host has left for further sessions, as measured at one time. */
export interface Room {
  memory: MemoryReading;
  /** Disk of the state directory. Undefined if the directory is gone. */
  disk: Space | undefined;
  /**
   * Percentage of the last 10 s in which every process that had work waited for memory. Undefined if the kernel has no
   * pressure stall information.
   */
  memoryPressure: number | undefined;
  /** The same for the disks, over the last 60 s. A single program that writes much may wait for them for seconds. */
  ioPressure: number | undefined;
}

export async function readRoom(stateDirectory: string, hostMemory: HostMemory): Promise<Room> {
  const [memory, disk, memoryPressure, ioPressure] = await Promise.all([
    hostMemory.read(),
    readDiskSpace(stateDirectory),
    readPressure('memory', 'avg10'),
    readPressure('io', 'avg60'),
  ]);
  return { memory, disk, memoryPressure, ioPressure };
}

async function readPressure(of: 'memory' | 'io', over: 'avg10' | 'avg60'): Promise<number | undefined> {
  const text = await readFile(`/proc/pressure/${of}`, 'utf8').catch(() => '');
  const percent = new RegExp(`^full .*\\b${over}=([0-9.]+)`, 'm').exec(text)?.[1];
  return percent === undefined ? undefined : Number(percent);
}
