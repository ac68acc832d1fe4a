import { type ChildProcess, spawn } from 'node:child_process';

export type ProgramResult = { exitCode: number | null; stdout: string; stderr: string };

export type RunProgramOptions = {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  timeoutMs?: number;
  /** Uses a separate process session, which a Ctrl-C at the terminal does not reach. */
  detached?: boolean;
  /**
   * Ends the program and its children with SIGTERM; the call rejects after their end. The program gets its own process
   * session, because some programs wait for children that a terminal would have interrupted.
   */
  signal?: AbortSignal | undefined;
  /** Receives the lines of stdout and stderr as they arrive. */
  onLine?: (line: string) => void;
};

/** Runs a program to its end. A program that does not exist gives exit code 127. */
export function runProgram(file: string, args: string[], options: RunProgramOptions = {}): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    options.signal?.throwIfAborted();
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: options.timeoutMs,
      detached: options.detached === true || options.signal !== undefined,
      killSignal: 'SIGKILL',
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      options.onLine?.(text);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
      options.onLine?.(text);
    });
    const end = () => terminateGroup(child);
    options.signal?.addEventListener('abort', end, { once: true });
    child.on('error', (error) => resolve({ exitCode: 127, stdout, stderr: stderr + error.message }));
    child.on('close', (exitCode) => {
      options.signal?.removeEventListener('abort', end);
      if (options.signal?.aborted) reject(options.signal.reason);
      else resolve({ exitCode, stdout, stderr });
    });
  });
}

function terminateGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGTERM');
  } catch {}
}

/** Runs a program like runProgram, but throws for an exit code other than 0, with the end of the output. */
export async function runProgramOrThrow(
  file: string,
  args: string[],
  options: RunProgramOptions = {},
): Promise<string> {
  const result = await runProgram(file, args, options);
  if (result.exitCode === 0) return result.stdout;
  const lastWords = (result.stderr || result.stdout).trim().split('\n').slice(-4).join('\n');
  throw new Error(`${file} ${args[0] ?? ''} ended with exit code ${result.exitCode}: ${lastWords}`);
}

/** Returns the absolute path of a program on PATH or in the sbin directories, or undefined. */
export async function findProgram(name: string): Promise<string | undefined> {
  const { access, constants } = await import('node:fs/promises');
  const directories = [...(process.env.PATH ?? '').split(':'), '/usr/local/sbin', '/usr/sbin', '/sbin'];
  for (const directory of directories) {
    if (!directory.startsWith('/')) continue;
    const path = `${directory}/${name}`;
    if (
      await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return path;
  }
  return undefined;
}
