import { readdir, readFile } from 'node:fs/promises';

const ROUNDS = 5;

/**
 * Kills what carries a mark that begins so in its environment: what left the group of its call, or outlived its worker. One that also
 * cleared its environment is not found.
 */
export async function endStrays(markPrefix: string, spare: (mark: string) => boolean = () => false): Promise<number> {
  let ended = 0;
  // One that is killed may just have started another.
  for (let round = 0; round < ROUNDS; round++) {
    const found = await findMarked(markPrefix, spare);
    if (found.length === 0) return ended;
    for (const pid of found) if (kill(pid)) ended += 1;
  }
  return ended;
}

async function findMarked(markPrefix: string, spare: (mark: string) => boolean): Promise<number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  const marks = await Promise.all(pids.map(readMark));
  return pids.filter((pid, index) => {
    const mark = marks[index];
    return pid !== process.pid && mark?.startsWith(markPrefix) === true && !spare(mark);
  });
}

async function readMark(pid: number): Promise<string | undefined> {
  // Gone, or somebody else's: not ours to end. Of a zombie it is empty.
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
