import { spawn } from 'node:child_process';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** Starts a program in a process session of its own, so that it outlives this process. Its output goes to a log file. */
export async function startDetached(file: string, args: string[], logPath: string): Promise<number> {
  const log = await open(logPath, 'a', 0o600);
  try {
    const child = spawn(file, args, { detached: true, stdio: ['ignore', log.fd, log.fd] });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.unref();
    return child.pid!;
  } finally {
    await log.close();
  }
}

/** The pid in a pid file, if that process is alive and runs the expected program. */
export async function readLivePid(pidPath: string, program: string): Promise<number | undefined> {
  const pid = Number((await readFile(pidPath, 'utf8').catch(() => '')).trim());
  return Number.isInteger(pid) && pid > 1 && (await isProgram(pid, program)) ? pid : undefined;
}

export function writePid(pidPath: string, pid: number): Promise<void> {
  return writeFile(pidPath, `${pid}\n`, { mode: 0o600 });
}

/** Terminates the process of a pid file, kills it when it does not end in time, and removes the file. */
export async function stopByPidFile(pidPath: string, program: string, graceMs = 15_000): Promise<boolean> {
  const pid = await readLivePid(pidPath, program);
  if (pid !== undefined) {
    process.kill(pid, 'SIGTERM');
    const killAt = Date.now() + graceMs;
    while (await isProgram(pid, program)) {
      if (Date.now() > killAt) process.kill(pid, 'SIGKILL');
      await delay(50);
    }
  }
  await rm(pidPath, { force: true });
  return pid !== undefined;
}

// Pids are reused after a reboot, so the name of the program is compared too.
async function isProgram(pid: number, program: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (process.platform !== 'linux') return true;
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const name = /^Name:\s*(.*)$/m.exec(status)?.[1];
  const state = /^State:\s*(\S)/m.exec(status)?.[1];
  return name === program.slice(0, 15) && state !== 'Z';
}
