import { setTimeout as delay } from 'node:timers/promises';
import type { Session } from '@shellfleet/client';

/**
 * A command that takes a processor for some seconds as the worker does when it carries a flood: by the ordinary policy,
 * not by that of a session.
 */
export function takeProcessor(seconds: number): string {
  return `timeout ${seconds} chrt --other 0 yes > /dev/null`;
}

/** Returns the durations (ms) of small commands that run one after another in a session while `work` runs. */
export async function timesWhile(session: Session, work: Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  let going = true;
  const end = () => {
    going = false;
  };
  work.then(end, end);
  while (going) {
    const from = performance.now();
    await session.run('echo hi');
    times.push(performance.now() - from);
    await delay(5);
  }
  return times;
}

/** Returns the durations (ms) of `count` small commands that run one after another in a session. */
export async function timesOf(session: Session, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const from = performance.now();
    await session.run('true');
    times.push(performance.now() - from);
  }
  return times;
}

export function p95(times: number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)] ?? Number.NaN;
}
