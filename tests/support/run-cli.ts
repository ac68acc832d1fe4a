import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { inject } from 'vitest';
import type { ClientStage } from './client-stage.ts';

export interface CliRun {
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  stdout: Buffer;
  stderr: string;
}

export interface CliProcess {
  child: ChildProcess;
  /** The output so far. */
  output(): { stdout: Buffer; stderr: string };
  end: Promise<CliRun>;
}

/** Starts the command line as a process that uses the stage's fleet. */
export function startCli(
  stage: ClientStage,
  args: readonly string[],
  env: Record<string, string> = {},
  cwd?: string,
): CliProcess {
  const child = spawn(process.execPath, ['--no-warnings', inject('programs').cli, ...args], {
    env: {
      PATH: process.env.PATH ?? '',
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      SHELLFLEET_REDIS_URL: stage.own.url,
      SHELLFLEET_NAMESPACE: stage.namespace,
      SHELLFLEET_SEAL_KEY: stage.sealKey,
      SHELLFLEET_STATE_DIR: '/nonexistent',
      ...env,
    },
    cwd,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  return follow(child);
}

/** Collects the output of a process and waits for its end. */
export function follow(child: ChildProcessWithoutNullStreams): CliProcess {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout.on('data', (data: Buffer) => stdout.push(data));
  child.stderr.on('data', (data: Buffer) => stderr.push(data));
  const output = () => ({ stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() });
  const end = new Promise<CliRun>((resolve) =>
    child.on('close', (exitCode, signal) => resolve({ exitCode, signal, ...output() })),
  );
  return { child, output, end };
}

export async function runCli(
  stage: ClientStage,
  args: readonly string[],
  options: { env?: Record<string, string>; stdin?: string | Uint8Array; cwd?: string } = {},
): Promise<CliRun> {
  const { child, end } = startCli(stage, args, options.env, options.cwd);
  child.stdin?.on('error', () => {});
  child.stdin?.end(options.stdin ?? '');
  return end;
}
