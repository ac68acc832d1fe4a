import { execFile } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';

/** The machine and the versions of a run. Figures mean nothing without them. */
export interface MachineFacts {
  commit: string | null;
  cpus: number;
  cpuModel: string;
  memoryBytes: number;
  kernel: string;
  node: string;
  redis: string;
  docker: string;
}

export async function readMachine(versions: { redis: string; docker: string }): Promise<MachineFacts> {
  const git = promisify(execFile)('git', ['describe', '--always', '--dirty'], { cwd: checkoutRoot });
  return {
    commit: await git.then(
      ({ stdout }) => stdout.trim(),
      () => null, // not a checkout
    ),
    cpus: cpus().length,
    cpuModel: cpus()[0]?.model ?? 'unknown',
    memoryBytes: totalmem(),
    kernel: release(),
    node: process.version,
    ...versions,
  };
}
