// What a host learns when the kernel kills processes because the memory of the whole host ran out.
//
// LESSON-1. The host takes no session for a moment, in which memory is measured again.
// LESSON-2. It keeps twice as much memory free, and counts twice as much for each session that is being opened. Each
//           further such time doubles both again. After a while without one, both are halved.

const PAUSE_MS = 10_000;
const HALVED_EVERY_MS = 10 * 60_000;
const MOST = 16;

export interface Lesson {
  /** Time of the last kill (ms, `Date.now()`). */
  at: number;
  /** Factor of what is kept free, as of that time. */
  factor: number;
}

/** Returns the lesson after a kill. Kills that follow each other are one. */
export function learn(lesson: Lesson | undefined, nowMs: number): Lesson {
  const factor = isPaused(lesson, nowMs) ? (lesson?.factor ?? 1) : Math.min(MOST, 2 * factorOf(lesson, nowMs));
  return { at: nowMs, factor };
}

/** Returns by how much more memory the host keeps free. 1 if nothing has happened, or if that is long ago. */
export function factorOf(lesson: Lesson | undefined, nowMs: number): number {
  if (lesson === undefined) return 1;
  return Math.max(1, lesson.factor / 2 ** Math.floor((nowMs - lesson.at) / HALVED_EVERY_MS));
}

export const isPaused = (lesson: Lesson | undefined, nowMs: number) =>
  lesson !== undefined && nowMs - lesson.at < PAUSE_MS;

/** Returns when the pause ends (ms). */
export const endOfPause = ({ at }: Lesson) => at + PAUSE_MS;
