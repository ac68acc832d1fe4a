import { readdirSync, readFileSync } from 'node:fs';

/**
 * Command lines of the living processes, zombies aside, that were started with this state directory in their
 * environment: all that `up` starts.
 */
export function processesOf(stateDirectory: string): string[] {
  const numbers = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return numbers.flatMap((pid) => {
    try {
      if (/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) return [];
      const env = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
      if (!env.includes(`SHELLFLEET_STATE_DIR=${stateDirectory}`)) return [];
      return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()];
    } catch {
      return []; // it ended meanwhile, or belongs to another user
    }
  });
}
