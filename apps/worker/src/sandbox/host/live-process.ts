import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Process of this machine. The kernel reuses its pid, but not with the same start time. */
export interface LiveProcess {
  pid: number;
  /** Start time in clock ticks since boot. */
  started: string;
}

const KILL_STEP_MS = 10;
const FIELDS_BEFORE_START = 19;

/** Tells whether the process runs. A zombie counts as ended. */
export async function isAlive({ pid, started }: LiveProcess): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[FIELDS_BEFORE_START] === started && !['Z', 'X'].includes(fields[0] ?? '');
}

/**
 * Kills a process, and its pid namespace if it is the first there. Returns false if the process outlives the deadline.
 */
export async function killAndWait(process_: LiveProcess, deadlineMs: number): Promise<boolean> {
  const end = performance.now() + deadlineMs;
  while (await isAlive(process_)) {
    if (performance.now() > end) return false;
    try {
      process.kill(process_.pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    await sleep(KILL_STEP_MS);
  }
  return true;
}
