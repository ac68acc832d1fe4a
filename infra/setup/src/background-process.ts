import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { endProcess, isRunning, type RecordedProcess, recordProcess } from './live-process.ts';

/** Starts a program in its own process session, so that it outlives this process. Its output goes to a log file. */
export async function startDetached(
  file: string,
  args: string[],
  { logPath, pidPath }: { logPath: string; pidPath: string },
): Promise<void> {
  const log = openSync(logPath, 'a', 0o600);
  try {
    const child = spawn(file, args, { detached: true, stdio: ['ignore', log, log] });
    if (child.pid !== undefined) writePidFile(pidPath, child.pid);
    await once(child, 'spawn');
    child.unref();
  } finally {
    closeSync(log);
  }
}

/** Writes a pid file synchronously, so that a new process has one even if this process is killed at any moment. */
export function writePidFile(pidPath: string, pid: number): void {
  const { startedAt } = recordProcess(pid);
  writeFileSync(pidPath, `${pid}\n${startedAt}\n`, { mode: 0o600 });
}

/** Returns true if the process of a pid file is alive and runs the expected program. */
export async function isPidFileLive(pidPath: string, program: string): Promise<boolean> {
  const recorded = await readPidFile(pidPath);
  return recorded !== undefined && isRunning(recorded, [program]);
}

/** Terminates the process of a pid file, kills it if it does not end in time, and removes the file. */
export async function stopByPidFile(pidPath: string, program: string, graceMs = 15_000): Promise<boolean> {
  const recorded = await readPidFile(pidPath);
  const ended = recorded !== undefined && (await endProcess(recorded, [program], { signal: 'SIGTERM', graceMs }));
  await rm(pidPath, { force: true });
  return ended;
}

async function readPidFile(pidPath: string): Promise<RecordedProcess | undefined> {
  const [pid, startedAt] = (await readFile(pidPath, 'utf8').catch(() => '')).split('\n');
  return pid && startedAt ? { pid: Number(pid), startedAt } : undefined;
}
