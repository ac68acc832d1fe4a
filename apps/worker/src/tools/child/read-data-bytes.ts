import { readFileSync } from 'node:fs';

/** Returns the private memory of this process as RLIMIT_DATA counts it. */
export function readDataBytes(): number {
  const [, kib = '0'] = /^VmData:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kib) * 1024;
}
