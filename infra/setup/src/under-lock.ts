import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { findProgram } from './run-program.ts';

/**
 * Does work while this process holds the lock of a file. The lock ends with the process. Without `flock` (macOS) there
 * is no lock, so the work must also be correct when two processes do it at once.
 */
export async function underLock<T>(path: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  const flock = await findProgram('flock');
  signal?.throwIfAborted();
  if (flock === undefined) return work();
  // cat replies when flock has the lock, and ends with its stdin, also when this process is killed.
  const holder = spawn(flock, [path, 'cat'], { stdio: ['pipe', 'pipe', 'ignore'], detached: true });
  const ended = once(holder, 'close');
  const giveUp = () => void holder.kill('SIGTERM');
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    holder.stdin.on('error', () => {});
    holder.stdin.write('\n');
    await Promise.race([once(holder.stdout, 'data'), ended]);
    signal?.throwIfAborted();
    return await work();
  } finally {
    signal?.removeEventListener('abort', giveUp);
    holder.stdin.end();
    await ended;
  }
}
