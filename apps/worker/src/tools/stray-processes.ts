import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import pLimit from 'p-limit';

const ROUNDS = 5;
/** Files are read by four threads. The rest is for the sessions, whose shells a worker that starts adopts at the same time. */
const READS_AT_ONCE = 2;

/** So many processes and threads do not start in this time, not even where there are the fewest ids: no id was given out twice. */
const NO_ID_TWICE_MS = 1_000;

interface StrayOptions {
  spare?(mark: string): boolean;
  /** The newest process when those with the mark could first start others, and when that was (`performance.now()`). */
  since?: { pid: number; at: number };
}

/**
 * Kills processes whose environment has a mark with this beginning: they left the process group of their call, or outlived their worker. A
 * process that cleared its environment is not found.
 */
export async function endStrays(markPrefix: string, { spare, since }: StrayOptions = {}): Promise<number> {
  let ended = 0;
  // A process may have started another just before it was killed.
  for (let round = 0; round < ROUNDS; round++) {
    const found = await findMarked(markPrefix, idsSince(since), spare);
    if (found.length === 0) return ended;
    for (const pid of found) if (kill(pid)) ended += 1;
  }
  return ended;
}

/** The id that the kernel gave out last, to a process or a thread; 0 when it does not tell. */
export function lastPid(): number {
  try {
    return Number(readFileSync('/proc/loadavg', 'latin1').trim().split(' ').at(-1)) || 0;
  } catch {
    return 0;
  }
}

/** Whether a process of this id can be one that started since. Ids are given out in ascending order, and begin again after the highest. */
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
  // Unreadable: gone, or of another user. Empty: a zombie.
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
