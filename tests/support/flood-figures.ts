import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Session } from '@shellfleet/client';

/** The most memory that a process has resident while `work` runs, bytes. */
export async function mostResident(pid: number, work: Promise<unknown>): Promise<number> {
  let most = 0;
  let going = true;
  void work.finally(() => {
    going = false;
  });
  while (going) {
    most = Math.max(most, await resident(pid));
    await delay(50);
  }
  return most;
}

export async function resident(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}

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
