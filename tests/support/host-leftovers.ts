import { glob, readFile, realpath } from 'node:fs/promises';

// What sessions of the host policy leave on this machine, found by looking at the machine: nothing here asks the worker.

/** Pids of everything that runs as one of the session users of the tests. */
export async function processesOf(uid: number): Promise<number[]> {
  const found: number[] = [];
  for await (const folder of glob('/proc/[0-9]*')) {
    const status = await readFile(`${folder}/status`, 'utf8').catch(() => '');
    const isZombie = /^State:\s+[ZX]/m.test(status);
    if (!isZombie && Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) === uid) found.push(Number(folder.split('/')[2]));
  }
  return found;
}

/** The keeper of the session user: the parent of its shell, seen from outside of its namespace. */
export async function keeperOf(uid: number): Promise<number> {
  for (const pid of await processesOf(uid)) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    if (/^NSpid:\s+\d+\s+1$/m.test(status)) return pid;
  }
  throw new Error(`no keeper runs as uid ${uid}`);
}

/** Everything of a host's that is named after its sandboxes: records, folders, workspaces and control groups. */
export async function filesOf(stateFolder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const path of glob([
    `${await realpath(stateFolder)}/hosts/*/h/[rsw]/*`,
    '/sys/fs/cgroup/*/shellfleet/*/*-*',
  ])) {
    found.push(path);
  }
  return found.filter((path) => !path.endsWith('/.keeper')).sort();
}
