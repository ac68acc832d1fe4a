import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { isRunning, readProcess } from './live-process.ts';

// Debian starts a service when its package is installed, unless /usr/sbin/policy-rc.d forbids it. Set-up's file has
// the pid of its process as a signature, and a later set-up removes it once that process is gone. A file without a
// signature is the administrator's and stays.

const POLICY_PATH = '/usr/sbin/policy-rc.d';
const SIGNATURE = /^# Of shellfleet's set-up, while process (\d+), started at (.+), installs packages\.$/m;

/** Does the work while no package may start its service. `path` is the policy file. */
export async function withoutStartingServices(work: () => Promise<void>, path = POLICY_PATH): Promise<void> {
  await removeStalePolicy(path);
  const startedAt = readProcess(process.pid)?.startedAt ?? 'an unknown time';
  const signature = `# Of shellfleet's set-up, while process ${process.pid}, started at ${startedAt}, installs packages.`;
  try {
    await writeFile(path, `#!/bin/sh\n${signature}\nexit 101\n`, { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return work();
    throw error;
  }
  try {
    await chmod(path, 0o755);
    await work();
  } finally {
    await rm(path, { force: true });
  }
}

/** Removes the policy file that a killed set-up has left. */
export async function removeStalePolicy(path = POLICY_PATH): Promise<void> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const [, pid, startedAt] = SIGNATURE.exec(text) ?? [];
  if (pid === undefined || startedAt === undefined) return;
  if (isRunning({ pid: Number(pid), startedAt }, [''])) return;
  await rm(path, { force: true }).catch(() => {}); // fails without root; the file does no harm to other users
}
