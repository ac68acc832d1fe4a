import { setTimeout as delay } from 'node:timers/promises';
import type { Session } from '@shellfleet/client';

/** 95 of 100 small commands of a session took less, ms: of those that were run, one after the other, while `work` runs. */
export async function p95While(session: Session, work: Promise<unknown>): Promise<{ p95Ms: number; commands: number }> {
  const times: number[] = [];
  let going = true;
  void work.finally(() => {
    going = false;
  });
  while (going) {
    const from = performance.now();
    await session.run('echo hi');
    times.push(performance.now() - from);
    await delay(5);
  }
  times.sort((a, b) => a - b);
  return { p95Ms: times[Math.floor(times.length * 0.95)] ?? Number.NaN, commands: times.length };
}
