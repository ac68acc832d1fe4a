import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Time in which Node starts on the machine for which the limits of tests are meant. */
const NODE_START_MS = 50;

/** Returns the factor by which this machine is slower or busier than that one now, at least 1. */
export async function slowdown(): Promise<number> {
  const from = performance.now();
  for (let start = 0; start < 3; start += 1) await run(process.execPath, ['--eval', '']);
  return Math.max(1, (performance.now() - from) / 3 / NODE_START_MS);
}
