import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** Returns the resident memory of a process, or 0 if the process has ended. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1_024;
}

/** Returns the greatest resident memory of a process while `work` runs. */
export async function mostResidentBytes(pid: number, work: Promise<unknown>): Promise<number> {
  let most = 0;
  let going = true;
  void work.finally(() => {
    going = false;
  });
  while (going) {
    most = Math.max(most, await residentBytes(pid));
    await delay(50);
  }
  return most;
}
