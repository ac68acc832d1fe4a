import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

// PROCESS-1. A process that was recorded is signalled only while its number, its start time and its command are all as
// they were. When one of them cannot be read, nothing is signalled: the number alone may have been given to another
// program since.

/** One process as it is recorded. Two processes may have the same number, but not one start time as well. */
export interface RecordedProcess {
  pid: number;
  startedAt: string;
}

/** A process that runs now. */
export interface FoundProcess {
  startedAt: string;
  /** Title or command line. */
  command: string;
}

const POLL_MS = 50;
/** Length of a date that `ps` prints for `lstart` in the C locale: `Sun Nov 22 15:34:00 2026`. */
const LSTART_LENGTH = 24;

/**
 * Returns the record of a process that this process has just started. It must be called in the same turn of the event
 * loop, so that a record exists as soon as the process does.
 */
export function recordProcess(pid: number): RecordedProcess {
  return { pid, startedAt: readProcess(pid)?.startedAt ?? 'unknown' };
}

/** Whether the recorded process still runs one of these programs. Each is a part of its title or command line. */
export function isRunning({ pid, startedAt }: RecordedProcess, programs: readonly string[]): boolean {
  const live = readProcess(pid);
  return live !== undefined && live.startedAt === startedAt && programs.some((name) => live.command.includes(name));
}

/**
 * Sends the signal, and SIGKILL when the process still runs after the grace. Resolves when the process is gone, with
 * false when it was gone before.
 */
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

/**
 * Reads a process. Returns undefined when there is none, when it is a zombie, or when it cannot be read for certain.
 */
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
    // The start is counted from the start of the machine.
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return { startedAt: `${boot} ${fields[19]}`, command };
  } catch {
    return undefined; // it ended meanwhile
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
