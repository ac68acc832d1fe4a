import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface ProgramEnd {
  status: 'passed' | 'failed' | 'timeout';
  output: string;
}

const KEPT_CHARACTERS = 20_000;
const TEAR_DOWN_MS = 5_000;

export interface ProgramOptions {
  cwd: string;
  timeoutMs: number;
  env?: NodeJS.ProcessEnv;
}

/**
 * Runs a program in a process group of its own. At the timeout
 * the group gets SIGTERM, and SIGKILL when it does not end.
 */
export async function runProgram(file: string, args: readonly string[], options: ProgramOptions): Promise<ProgramEnd> {
  const env = options.env ?? process.env;
  const child = spawn(file, args, { cwd: options.cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (text: string): void => {
    output = (output + text).slice(-KEPT_CHARACTERS);
  };
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);
  let timedOut = false;
  const signalGroup = (signal: NodeJS.Signals): void => {
    try {
      process.kill(-child.pid!, signal);
    } catch {
      // The group has ended.
    }
  };
  const timer = setTimeout(() => {
    timedOut = true;
    signalGroup('SIGTERM');
  }, options.timeoutMs);
  const killTimer = setTimeout(() => signalGroup('SIGKILL'), options.timeoutMs + TEAR_DOWN_MS);
  const stop = (): void => signalGroup('SIGKILL');
  process.once('exit', stop);
  const [exitCode] = (await once(child, 'exit')) as [number | null];
  clearTimeout(timer);
  clearTimeout(killTimer);
  signalGroup('SIGKILL');
  process.off('exit', stop);
  return { status: timedOut ? 'timeout' : exitCode === 0 ? 'passed' : 'failed', output };
}
