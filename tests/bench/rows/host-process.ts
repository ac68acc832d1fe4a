import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/**
 * Starts a row's own host as a process, and resolves when it reports that it is ready. The URL has a password, so it
 * is not passed as an argument.
 */
export async function startHostProcess(file: string, redisUrl: string): Promise<HostProcess> {
  const env = { ...process.env, BENCH_REDIS_URL: redisUrl };
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), { env });
  const ended = once(child, 'exit').then(() => {
    throw new Error(`${file} ended before it was ready`);
  });
  await Promise.race([once(child, 'message'), ended]);
  ended.catch(() => {});
  return new HostProcess(child);
}

export class HostProcess {
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    this.#child = child;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  async close(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
