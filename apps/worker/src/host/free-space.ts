import { readFile, statfs } from 'node:fs/promises';
import { freemem, totalmem } from 'node:os';

export interface Space {
  freeBytes: number;
  totalBytes: number;
}

/** Largest part of the total that is kept free by default, so that a small disk or memory is not short at once. */
const LEAST_SHARE = 1 / 20;

/** Returns the space that unprivileged users have on the file system of `path`; undefined if there is no such path. */
export async function readDiskSpace(path: string): Promise<Space | undefined> {
  const found = await statfs(path).catch(() => undefined);
  return found && { freeBytes: found.bavail * found.bsize, totalBytes: found.blocks * found.bsize };
}

/** Returns the memory that programs could use without swapping. */
export async function readMemory(path = '/proc/meminfo'): Promise<Space> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const available = /^MemAvailable:\s+(\d+) kB$/m.exec(text)?.[1];
  return { freeBytes: available === undefined ? freemem() : Number(available) * 1_024, totalBytes: totalmem() };
}

/** Returns the free space to keep: the operator's setting, else the lesser of `usual` and a twentieth of the total. */
export function leastFree({ totalBytes }: Space, given: number | undefined, usual: number): number {
  return given ?? Math.min(usual, Math.floor(totalBytes * LEAST_SHARE));
}

/** Returns a sentence for operators if less than `leastBytes` is free. */
export function describeShortage(what: string, space: Space, leastBytes: number, variable: string): string | undefined {
  if (space.freeBytes >= leastBytes) return undefined;
  return `${what} has ${inMib(space.freeBytes)} free of ${inMib(space.totalBytes)}; ${variable} is ${inMib(leastBytes)}.`;
}

export function inMib(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)} MiB`;
}
