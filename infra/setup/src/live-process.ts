import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

// PROCESS-1. A recorded process is signalled only while its pid, start time and command are unchanged and readable,
//            because the system may have given its pid to another program.

/** Recorded process. The start time tells processes with the same pid apart. */
export interface RecordedProcess {
  pid: number;
  startedAt: string;
}

export interface FoundProcess {
  startedAt: string;
  /** Title or command line. */
  command: string;
}

const POLL_MS = 50;
/** Length of a date that `ps` prints for `lstart` in the C locale: `Sun Nov 22 15:34:00 2026`. */
const LSTART_LENGTH = 24;

/** Records a process that was started in this turn of the event loop. Synchronous, so no process is missed. */
export function recordProcess(pid: number): RecordedProcess {
  return { pid, startedAt: readProcess(pid)?.startedAt ?? 'unknown' };
}

/** Returns true if the process still runs a program whose title or command line contains one of these. */
export function isRunning({ pid, startedAt }: RecordedProcess, programs: readonly string[]): boolean {
  const live = readProcess(pid);
  return live !== undefined && live.startedAt === startedAt && programs.some((name) => live.command.includes(name));
}

/** Sends the signal, and SIGKILL after the grace. Resolves to false if the process was gone before. */
export async function endProcess(
  recorded: RecordedProcess,
  programs: readonly string[],
  { signal, graceMs }: { signal: NodeJS.Signals; graceMs: number },
): Promise<boolean> {
  if (!isRunning(recorded, programs)) return false;
  sendSignal(recorded.pid, signal);
  for (const killAt = Date.now() + graceMs; isRunning(recorded, programs); await delay(POLL_MS))
    if (Date.now() > killAt) sendSignal(recorded.pid, 'SIGKILL');
  return true;
}

/** Reads a process. Returns undefined if there is none, if it is a zombie, or if it cannot be read for certain. */
export function readProcess(pid: number, platform: NodeJS.Platform = process.platform): FoundProcess | undefined {
  if (!Number.isSafeInteger(pid) || pid < 1) return undefined;
  return platform === 'linux' ? readFromProc(pid) : askPs(pid);
}

function readFromProc(pid: number): FoundProcess | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may contain any character.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    // The start time is counted from the start of the machine.
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { startedAt: `${boot} ${fields[19]}`, command };
  } catch {
    return undefined; // the process ended meanwhile
  }
}

function askPs(pid: number): FoundProcess | undefined {
  const env = { PATH: '/bin:/usr/bin', LC_ALL: 'C', TZ: 'UTC' };
  const args = ['-ww', '-o', 'state=,lstart=,command=', '-p', String(pid)];
  const { status, stdout } = spawnSync('ps', args, { env, encoding: 'utf8', timeout: 5_000 });
  const [, state, rest] = /^\s*(\S+)\s+(.*)$/m.exec(stdout ?? '') ?? [];
  if (status !== 0 || rest === undefined || state?.startsWith('Z')) return undefined;
  return { startedAt: rest.slice(0, LSTART_LENGTH), command: rest.slice(LSTART_LENGTH).trim() };
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
