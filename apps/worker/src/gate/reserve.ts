import { SESSION_BYTES, type WorkerConfig } from '../config/config.ts';
import { inMib, leastFree, type Space } from '../host/free-space.ts';
import { USUAL_FREE_MEMORY_BYTES } from '../host/host-memory.ts';
import { endOfPause, factorOf, isPaused, type Lesson } from './lesson.ts';

/** Settings of the operator. */
export type Thresholds = Pick<WorkerConfig, 'leastFree' | 'mostPressure'>;

/** Memory that a host keeps free, and that it counts for each session that is being opened. */
export interface Reserve {
  leastBytes: number;
  sessionBytes: number;
  /** Name of `leastBytes` in sentences: the operator's variable. */
  setting: string;
}

/** Largest part of the memory that is kept free after the kernel has killed processes. */
const MOST_SHARE = 1 / 2;

export function reserveOf(
  memory: Space,
  { leastFree: { memoryBytes } }: Pick<Thresholds, 'leastFree'>,
  lesson?: Lesson,
  nowMs = 0,
): Reserve {
  const variable = 'SHELLFLEET_MIN_FREE_MEMORY';
  const factor = factorOf(lesson, nowMs);
  const leastBytes = leastFree(memory, memoryBytes, USUAL_FREE_MEMORY_BYTES);
  if (factor === 1) return { leastBytes, sessionBytes: SESSION_BYTES, setting: variable };
  return {
    leastBytes: Math.max(leastBytes, Math.min(factor * leastBytes, Math.floor(memory.totalBytes * MOST_SHARE))),
    sessionBytes: factor * SESSION_BYTES,
    setting: `${variable}, raised since the kernel killed processes,`,
  };
}

/** Returns why a host takes no session for a moment, in which the memory that the kernel has freed is measured. */
export function findPause(lesson: Lesson | undefined, nowMs: number): string | undefined {
  if (lesson === undefined || !isPaused(lesson, nowMs)) return undefined;
  return `${describeKill(lesson)} It takes no session until ${new Date(endOfPause(lesson)).toISOString()}.`;
}

/** Returns what an operator should know while a host keeps more memory free. */
export function describeLesson(lesson: Lesson | undefined, reserve: Reserve, nowMs: number): string[] {
  if (lesson === undefined || factorOf(lesson, nowMs) === 1) return [];
  const { leastBytes, sessionBytes } = reserve;
  return [
    `${describeKill(lesson)} It keeps ${inMib(leastBytes)} free for now, and counts ${inMib(sessionBytes)} for each session that is being opened. Lower SHELLFLEET_SLOTS, or the sessions' limits.memoryBytes.`,
  ];
}

const describeKill = ({ at }: Lesson) =>
  `The memory of the host ran out at ${new Date(at).toISOString()}, and the kernel killed processes.`;
