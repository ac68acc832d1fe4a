import { describeShortage, inMib, leastFree } from '../host/free-space.ts';
import type { Room } from './read-room.ts';
import { reserveOf, type Thresholds } from './reserve.ts';

const MIB = 2 ** 20;
const USUAL_FREE_DISK_BYTES = 1_024 * MIB;

/** Sessions that the measured memory does not contain yet. */
export interface Opening {
  /** Sessions that were being opened at the measurement, or were taken since. */
  sessions: number;
  /** Sessions that wait here until others have been opened, and those that were just taken. */
  waiting: number;
  /** Number of waiting sessions with which the host takes no further one. */
  mostWaiting: number;
}

/** Returns why the host opens no session at present, one sentence each. */
export function findShortages(
  stateDirectory: string,
  room: Room,
  thresholds: Thresholds,
  reserve = reserveOf(room.memory, thresholds),
): string[] {
  const { mostPressure } = thresholds;
  const { disk, memory, memoryPressure, ioPressure } = room;
  const leastDisk = disk && leastFree(disk, thresholds.leastFree.diskBytes, USUAL_FREE_DISK_BYTES);
  return [
    disk && leastDisk && describeShortage(`The disk of ${stateDirectory}`, disk, leastDisk, 'SHELLFLEET_MIN_FREE_DISK'),
    describeShortage('The memory of the host', memory, reserve.leastBytes, reserve.setting),
    describePressure('memory', memoryPressure, mostPressure.memory, 'SHELLFLEET_MAX_MEMORY_PRESSURE'),
    describePressure('disks', ioPressure, mostPressure.io, 'SHELLFLEET_MAX_IO_PRESSURE'),
  ].filter((problem) => typeof problem === 'string');
}

/** Returns why a host without shortages takes no further session until those that it opens are open. */
export function findCrowd(
  { memory }: Room,
  opening: Opening,
  thresholds: Thresholds,
  reserve = reserveOf(memory, thresholds),
): string | undefined {
  const { sessions, waiting, mostWaiting } = opening;
  const neededBytes = sessions * reserve.sessionBytes;
  if (memory.freeBytes - neededBytes < reserve.leastBytes)
    return `The memory of the host has ${inMib(memory.freeBytes)} free, of which ${sessions} sessions that are being opened may take ${inMib(neededBytes)}; ${reserve.setting} is ${inMib(reserve.leastBytes)}.`;
  if (waiting >= mostWaiting) return `${waiting} sessions of this host wait until others have been opened.`;
  return undefined;
}

/** Returns the number of further sessions for which there is memory. */
export function countPlaces(
  { memory }: Room,
  { sessions }: Pick<Opening, 'sessions'>,
  thresholds: Thresholds,
  { leastBytes, sessionBytes } = reserveOf(memory, thresholds),
): number {
  return Math.max(0, Math.floor((memory.freeBytes - leastBytes) / sessionBytes) + 1 - sessions);
}

function describePressure(of: string, percent: number | undefined, most: number, variable: string) {
  if (percent === undefined || percent <= most) return undefined;
  return `The processes of the host wait for its ${of} ${percent} % of the time; ${variable} is ${most}.`;
}
