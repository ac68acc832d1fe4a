import { repeat } from '@shellfleet/concurrency';
import type { Logger } from 'pino';
import { describeShortage, leastFree, readDiskSpace, readMemory } from '../host/free-space.ts';

const MIB = 2 ** 20;
/** Interval of measurements, and so the delay until a host with room takes sessions again. */
const INTERVAL_MS = 2_000;
const USUAL_FREE_DISK_BYTES = 1_024 * MIB;
const USUAL_FREE_MEMORY_BYTES = 256 * MIB;

/** Free bytes that the operator demands. */
export interface LeastFree {
  diskBytes: number | undefined;
  memoryBytes: number | undefined;
}

export interface HostRoom {
  /** Returns why this host takes no new sessions at present. Undefined if it takes them. */
  problem(): string | undefined;
  close(): Promise<void>;
}

/** Measures free memory and the disk of the state directory until closed. Resolves after the first measurement. */
export async function watchHostRoom(options: {
  stateDirectory: string;
  least: LeastFree;
  logger: Logger;
  /** Is called when the host has room again. */
  onRoom(): void;
  intervalMs?: number;
}): Promise<HostRoom> {
  const { stateDirectory, least, logger } = options;
  let problem: string | undefined;
  const measure = async () => {
    const before = problem;
    problem = await findShortage(stateDirectory, least);
    if (before === undefined && problem !== undefined) logger.warn({ problem }, 'host.short');
    if (before === undefined || problem !== undefined) return;
    logger.info('host.has-room');
    options.onRoom();
  };
  const rounds = repeat(measure, { everyMs: options.intervalMs ?? INTERVAL_MS });
  await rounds.now();
  return { problem: () => problem, close: rounds.close };
}

async function findShortage(stateDirectory: string, least: LeastFree): Promise<string | undefined> {
  const [disk, memory] = await Promise.all([readDiskSpace(stateDirectory), readMemory()]);
  const problems = [
    disk &&
      describeShortage(
        `The disk of ${stateDirectory}`,
        disk,
        leastFree(disk, least.diskBytes, USUAL_FREE_DISK_BYTES),
        'SHELLFLEET_MIN_FREE_DISK',
      ),
    describeShortage(
      'The memory of the host',
      memory,
      leastFree(memory, least.memoryBytes, USUAL_FREE_MEMORY_BYTES),
      'SHELLFLEET_MIN_FREE_MEMORY',
    ),
  ].filter((found) => found !== undefined);
  return problems.length === 0 ? undefined : problems.join(' ');
}
