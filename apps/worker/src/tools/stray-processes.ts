import { readdir, readFile } from 'node:fs/promises';
import pLimit from 'p-limit';

const ROUNDS = 5;
/** Files are read by four threads. The rest is for the sessions, whose shells a worker that starts adopts at the same time. */
const READS_AT_ONCE = 2;

/**
 * Kills processes whose environment has a mark with this beginning: they left the process group of their call, or outlived their worker. A
 * process that cleared its environment is not found.
 */
export async function endStrays(markPrefix: string, spare: (mark: string) => boolean = () => false): Promise<number> {
  let ended = 0;
  // A process may have started another just before it was killed.
  for (let round = 0; round < ROUNDS; round++) {
    const found = await findMarked(markPrefix, spare);
    if (found.length === 0) return ended;
    for (const pid of found) if (kill(pid)) ended += 1;
  }
  return ended;
}

async function findMarked(markPrefix: string, spare: (mark: string) => boolean): Promise<number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  const marks = await pLimit(READS_AT_ONCE).map(pids, readMark);
  return pids.filter((pid, index) => {
    const mark = marks[index];
    return pid !== process.pid && mark?.startsWith(markPrefix) === true && !spare(mark);
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
