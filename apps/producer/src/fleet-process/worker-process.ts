import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { checkoutRoot } from '@shellfleet/setup';

/** Exponential backoff of restarts: doubles up to the longest pause, and is reset when a worker has lived for the reset time. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const RESET_AFTER_MS = 60_000;

export interface WorkerProcess {
  readonly pid: number | undefined;
  /** Resolves at the first `ready`; rejects when the worker ends before it. */
  readonly ready: Promise<void>;
  /** Sends the signal, stops restarting, and waits for the end; kills after `graceMs`. */
  stop(signal: 'SIGINT' | 'SIGTERM', graceMs: number): Promise<void>;
}

export function workerArguments(): string[] {
  return sourceProgram('apps/worker/src/main.ts');
}

/** Node's arguments for a program of this checkout. */
export function sourceProgram(path: string): string[] {
  return ['--conditions=@shellfleet/source', '--no-warnings', join(checkoutRoot, path)];
}

/** A worker that is started again when it dies. `onLine` receives the lines of its log, `onRestart` the reason for each restart. */
export function superviseWorker(
  env: NodeJS.ProcessEnv,
  onOutput: (chunk: Buffer) => void,
  onRestart: (reason: string) => void,
): WorkerProcess {
  let child: ChildProcess | undefined;
  let stopping = false;
  const ready = Promise.withResolvers<void>();
  ready.promise.catch(() => {});
  const ended = run();
  return {
    get pid() {
      return child?.pid;
    },
    ready: ready.promise,
    async stop(signal, graceMs) {
      stopping = true;
      child?.kill(signal);
      const killed = new AbortController();
      void delay(graceMs, undefined, { signal: killed.signal }).then(
        () => child?.kill('SIGKILL'),
        () => {},
      );
      await ended;
      killed.abort();
    },
  };

  async function run(): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; !stopping; ) {
      const startedAt = Date.now();
      const reason = await runOnce();
      ready.reject(new Error(reason));
      if (stopping) return;
      if (Date.now() - startedAt > RESET_AFTER_MS) pauseMs = FIRST_PAUSE_MS;
      onRestart(reason);
      await delay(pauseMs);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  async function runOnce(): Promise<string> {
    // Detached, so that a Ctrl-C in the terminal reaches the supervisor only. It decides which signal the worker gets.
    child = spawn(process.execPath, workerArguments(), {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const errors: Buffer[] = [];
    child.stdout?.on('data', onOutput);
    child.stderr?.on('data', (chunk: Buffer) => {
      errors.push(chunk);
      if (errors.length > 50) errors.shift();
      onOutput(chunk);
    });
    child.on('message', () => ready.resolve());
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
    const said = Buffer.concat(errors).toString('utf8').trim().split('\n').at(-1);
    return said || `it ended with ${signal ?? `exit code ${code}`}`;
  }
}
