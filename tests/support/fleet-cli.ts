import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { type CliProcess, type CliRun, follow } from './run-cli.ts';
import type { TestFleet } from './start-fleet.ts';
import { until } from './until.ts';

const launcher = fileURLToPath(new URL('../../apps/producer/bin/shellfleet', import.meta.url));

export type CliOptions = {
  env?: Record<string, string>;
  /** Bytes of stdin. With `null` stdin stays open, and the test writes to it. */
  stdin?: string | Uint8Array | null;
  /** A file or device that is its stdout. */
  stdoutPath?: string;
  /** Its working directory. */
  cwd?: string;
};

/**
 * The command line in a process of its own, with the fleet's address in its environment; at a terminal by its launcher,
 * as users start it.
 */
export class FleetCli {
  readonly #env: NodeJS.ProcessEnv;

  constructor({ redisUrl, namespace, sealKey }: Pick<TestFleet, 'redisUrl' | 'namespace' | 'sealKey'>) {
    this.#env = {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      SHELLFLEET_REDIS_URL: redisUrl,
      SHELLFLEET_NAMESPACE: namespace,
      SHELLFLEET_SEAL_KEY: sealKey,
      SHELLFLEET_STATE_DIR: '/nonexistent',
    };
  }

  start(args: readonly string[], { env, stdin, stdoutPath, cwd }: CliOptions = {}): CliProcess {
    const command = [process.execPath, '--no-warnings', inject('programs').cli, ...args];
    const redirected = stdoutPath === undefined ? [] : ['sh', '-c', 'out=$0; exec "$@" > "$out"', stdoutPath];
    const [program = '', ...words] = [...redirected, ...command];
    const started = follow(
      spawn(program, words, {
        env: { ...this.#env, ...env },
        stdio: ['pipe', 'pipe', 'pipe'],
        cwd,
      }),
    );
    started.child.stdin?.on('error', () => {});
    if (stdin !== null) started.child.stdin?.end(stdin ?? '');
    return started;
  }

  /** Runs at a terminal. `converse` types and waits for output. */
  async atTerminal(
    args: readonly string[],
    converse: (type: (keys: string) => void, untilShown: (words: string) => Promise<unknown>) => Promise<void>,
    { env }: Pick<CliOptions, 'env'> = {},
  ): Promise<{ exitCode: number | null; shown: string }> {
    const words = [launcher, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
    const { child, output, end } = follow(
      spawn('script', ['-qefc', words, '/dev/null'], {
        env: { ...this.#env, ...env },
        stdio: ['pipe', 'pipe', 'pipe'],
      }),
    );
    await converse(
      (keys) => child.stdin?.write(keys),
      (what) =>
        until(
          () => output().stdout.toString(),
          (shown) => shown.includes(what),
        ),
    );
    const { exitCode, stdout } = await end;
    child.stdin?.destroy();
    return { exitCode, shown: stdout.toString() };
  }

  run(args: readonly string[], options?: CliOptions): Promise<CliRun> {
    return this.start(args, options).end;
  }

  /** A run as text, to compare as a whole. */
  async text(args: readonly string[], options?: CliOptions) {
    const { exitCode, stdout, stderr } = await this.run(args, options);
    return { exitCode, stdout: stdout.toString(), stderr };
  }
}
