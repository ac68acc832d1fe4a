import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Returns the seal keys of the environment, or else those of the state directory, which it makes once and privately.
 */
export async function ensureSealKey(directory: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  if (env.SHELLFLEET_SEAL_KEY) return env.SHELLFLEET_SEAL_KEY.split(',').map((key) => key.trim());
  const path = join(directory, 'seal-key');
  await writeFile(path, randomBytes(32).toString('base64'), { mode: 0o600, flag: 'wx' }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    },
  );
  return [(await readFile(path, 'utf8')).trim()];
}
