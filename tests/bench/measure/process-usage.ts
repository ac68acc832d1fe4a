import { readFile } from 'node:fs/promises';

/** The unit of processor times in /proc, on every Linux that Node runs on. */
const TICK_US = 10_000;

/** Returns the processor time of another process since its start, or undefined without /proc. */
export async function readCpuUs(pid: number | undefined): Promise<number | undefined> {
  const stat = await readProc(pid, 'stat');
  if (stat === undefined) return undefined;
  // The name is in parentheses and may contain any character. utime and stime are the 14th and 15th field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}

export async function readRssBytes(pid: number | undefined): Promise<number | undefined> {
  return toBytes(/^VmRSS:\s+(\d+) kB$/m.exec((await readProc(pid, 'status')) ?? ''));
}

/** Returns the memory of a process, of which each page that others have too counts in part. */
export async function readPssBytes(pid: number | undefined): Promise<number | undefined> {
  return toBytes(/^Pss:\s+(\d+) kB$/m.exec((await readProc(pid, 'smaps_rollup')) ?? ''));
}

function toBytes(match: RegExpExecArray | null): number | undefined {
  return match === null ? undefined : Number(match[1]) * 1_024;
}

async function readProc(pid: number | undefined, file: string): Promise<string | undefined> {
  return pid === undefined ? undefined : readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => undefined);
}
