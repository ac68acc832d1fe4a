import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import pLimit from 'p-limit';

const ROUNDS = 5;
/** Concurrent reads of files, for which Node has four threads. A starting worker also adopts shells with them. */
const READS_AT_ONCE = 2;

/** Time that the kernel needs at least to assign every process id once, even if there are few ids. */
const NO_ID_TWICE_MS = 1_000;

interface StrayOptions {
  spare?(mark: string): boolean;
  /** Newest process at the time `at` (`performance.now()`). Marked processes started others only after that. */
  since?: { pid: number; at: number };
}

/** Kills processes that left their call's group, or outlived their worker, unless they cleared their environment. */
export async function endStrays(markPrefix: string, { spare, since }: StrayOptions = {}): Promise<number> {
  let ended = 0;
  // A process may have started another one just before it was killed.
  for (let round = 0; round < ROUNDS; round++) {
    const found = await findMarked(markPrefix, idsSince(since), spare);
    if (found.length === 0) return ended;
    for (const pid of found) if (kill(pid)) ended += 1;
  }
  return ended;
}

/** Returns the last id that the kernel assigned to a process or thread. 0 if unknown. */
export function lastPid(): number {
  try {
    return Number(readFileSync('/proc/loadavg', 'latin1').trim().split(' ').at(-1)) || 0;
  } catch {
    return 0;
  }
}

/** Tells which ids may have been assigned since `since`. The kernel counts up, and begins again after the last id. */
function idsSince(since: StrayOptions['since']): (pid: number) => boolean {
  if (since === undefined || since.pid === 0 || performance.now() - since.at > NO_ID_TWICE_MS) return () => true;
  const [from, to] = [since.pid, lastPid()];
  if (to === 0) return () => true;
  return from <= to ? (pid) => pid > from && pid <= to : (pid) => pid > from || pid <= to;
}

async function findMarked(
  markPrefix: string,
  mayBe: (pid: number) => boolean,
  spare: (mark: string) => boolean = () => false,
): Promise<number[]> {
  const names = await readdir('/proc').catch(() => []);
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const candidates = pids.filter((pid) => pid !== process.pid && mayBe(pid));
  const marks = await pLimit(READS_AT_ONCE).map(candidates, readMark);
  return candidates.filter((_, index) => {
    const mark = marks[index];
    return mark?.startsWith(markPrefix) === true && !spare(mark);
  });
}

async function readMark(pid: number): Promise<string | undefined> {
  // An unreadable process is gone, or of another user. An empty environment is that of a zombie.
  const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
  return /(?:^|\0)SHELLFLEET_TOOL_CALL=([^\0]*)/.exec(environment)?.[1];
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}
