import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Runs the docker program, which uses the logins of this user, and returns its stdout. Throws with the last line of
 * stderr when it fails.
 */
export async function docker(args: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)('docker', args, { maxBuffer: 16 * 2 ** 20 })).stdout.trim();
  } catch (error) {
    const { code, message, stderr = '' } = error as Error & { code?: unknown; stderr?: string };
    if (code === 'ENOENT') throw new Error('The docker program is missing, which pulls and pushes with your logins.');
    throw new Error(`docker ${args[0]} failed: ${stderr.trim().split('\n').at(-1) || message}`);
  }
}
