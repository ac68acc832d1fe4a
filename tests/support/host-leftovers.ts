import { createHash } from 'node:crypto';
import { glob, readFile } from 'node:fs/promises';

// Processes and files that sessions of the host policy leave on this machine, read from the machine and not from the
// worker.

/** Pids of all processes of this session user of the tests. */
export async function processesOf(uid: number): Promise<number[]> {
  const found: number[] = [];
  for await (const directory of glob('/proc/[0-9]*')) {
    const status = await readFile(`${directory}/status`, 'utf8').catch(() => '');
    const isZombie = /^State:\s+[ZX]/m.test(status);
    if (!isZombie && Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) === uid) found.push(Number(directory.split('/')[2]));
  }
  return found;
}

/**
 * The pid of the session user's keeper, which is the first process of its namespace, as seen from outside the
 * namespace.
 */
export async function keeperOf(uid: number): Promise<number> {
  for (const pid of await processesOf(uid)) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    if (/^NSpid:\s+\d+\s+1$/m.test(status)) return pid;
  }
  throw new Error(`no keeper runs as uid ${uid}`);
}

/** Only root starts shells as another user. Without root the tests of that are reported as skipped. */
export const isRoot = process.platform === 'linux' && process.getuid?.() === 0;

/**
 * Returns all files of one fleet's hosts that are named after sandboxes: records, directories, workspaces and control
 * groups.
 */
export async function filesOf(stateDirectory: string): Promise<string[]> {
  const groups: string[] = [];
  for await (const path of glob(`${stateDirectory}/hosts/*/key`)) {
    const key = Buffer.from((await readFile(path, 'utf8')).trim(), 'hex');
    groups.push(`shellfleet/${createHash('sha256').update(key).digest('hex').slice(0, 12)}*`);
  }
  return filesIn(`${stateDirectory}/hosts/*`, ...groups);
}

/**
 * Does the same as filesOf() for a directory with one directory per host. `groups` are paths below the top of the
 * control groups, of either version.
 */
export async function filesIn(hosts: string, ...groups: string[]): Promise<string[]> {
  const found: string[] = [];
  const tops = ['/sys/fs/cgroup', '/sys/fs/cgroup/*'];
  const groupsOf = (top: string) => groups.map((group) => `${top}/${group}/*-*`);
  for await (const path of glob([`${hosts}/*/[rsw]/*`, ...tops.flatMap(groupsOf)])) found.push(path);
  return found.filter((path) => !path.endsWith('/.keeper')).sort();
}
