import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { ShellfleetError } from '@shellfleet/protocol';
import { type RecordedProcess, recordProcess } from '@shellfleet/setup';
import type { z } from 'zod';

/** Exit code of a process with invalid settings. */
const WRONG_SETTING = 2;
/** First pause before a restart. Each restart doubles the pause. A process that lives long enough resets it. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const RESET_AFTER_MS = 60_000;

export interface SupervisedProgram<Ready> {
  /** Arguments of Node. */
  args: readonly string[];
  /** Returns the environment of the next start. */
  env(): NodeJS.ProcessEnv;
  /** Message of a process that is ready. */
  ready: z.ZodType<Ready>;
}

export interface SupervisedProcess<Ready> {
  /** The process that runs or ran last, with its message once it is ready. */
  readonly process: (RecordedProcess & Partial<Ready>) | undefined;
  /** Resolves at the first message, and rejects if the process ends before. */
  readonly ready: Promise<void>;
  /** Sends the signal, makes no more restarts, and waits for the process's end. Kills the process after `graceMs`. */
  stop(signal: 'SIGINT' | 'SIGTERM', graceMs: number): Promise<void>;
}

export interface ProcessEvents<Ready> {
  /** Called when `SupervisedProcess.process` has changed; after a start, in the same turn of the event loop. */
  changed(process: SupervisedProcess<Ready>['process']): void;
  output(chunk: Buffer): void;
  restarts(reason: string): void;
}

/** Supervises a process of a fleet, and starts it again when it dies. */
export function superviseProcess<Ready extends object>(
  { args, env, ready: readySchema }: SupervisedProgram<Ready>,
  on: ProcessEvents<Ready>,
): SupervisedProcess<Ready> {
  let child: ChildProcess | undefined;
  let recorded: (RecordedProcess & Partial<Ready>) | undefined;
  let stopping = false;
  let wasReady = false;
  const ready = Promise.withResolvers<void>();
  ready.promise.catch(() => {});
  const ended = run();
  return {
    get process() {
      return recorded;
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
      const { reason, code } = await runOnce();
      ready.reject(code === WRONG_SETTING ? new ShellfleetError('COMMAND_INVALID', reason) : new Error(reason));
      // The start of the fleet fails with the reason of a process that was never ready.
      if (stopping || !wasReady) return;
      if (Date.now() - startedAt > RESET_AFTER_MS) pauseMs = FIRST_PAUSE_MS;
      on.restarts(reason);
      await delay(pauseMs);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  async function runOnce(): Promise<{ reason: string; code: number | null }> {
    // Detached, so that Ctrl-C reaches only the supervisor, which selects the signal of each process.
    child = spawn(process.execPath, args, {
      env: env(),
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    if (child.pid !== undefined) recorded = recordProcess(child.pid) as RecordedProcess & Partial<Ready>;
    on.changed(recorded);
    const errors: Buffer[] = [];
    child.stdout?.on('data', on.output);
    child.stderr?.on('data', (chunk: Buffer) => {
      errors.push(chunk);
      if (errors.length > 50) errors.shift();
      on.output(chunk);
    });
    child.on('message', (message) => {
      wasReady = true;
      if (recorded !== undefined) recorded = { ...recorded, ...readySchema.parse(message) };
      on.changed(recorded);
      ready.resolve();
    });
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
    const said = lastMessage(Buffer.concat(errors).toString('utf8'));
    return { reason: said || `it ended with ${signal ?? `exit code ${code}`}`, code };
  }
}

/** Returns the last line, or the message of the error if Node printed one that nothing caught, above its version. */
export function lastMessage(stderr: string): string {
  const lines = stderr.trim().split('\n');
  const last = lines.at(-1) ?? '';
  if (!/^Node\.js v\d/.test(last)) return last;
  return lines.findLast((line) => /^(?:Uncaught )?(?:[A-Z]\w*)?Error\b.*: /.test(line)) ?? last;
}
