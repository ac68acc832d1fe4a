// The command line at a real pseudo-terminal of this machine, which `script` (util-linux) creates.
import { execFile, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type CliProcess, follow } from './run-cli.ts';
import type { TestFleet } from './start-fleet.ts';
import { until } from './until.ts';

const launcher = fileURLToPath(new URL('../../apps/producer/bin/shellfleet', import.meta.url));
const run = promisify(execFile);

/**
 * Prints the name and the settings of the terminal, runs the command line, and prints its exit code and the settings
 * again.
 */
const WRAPPER = `
stty rows 30 cols 100
echo "tty=$(tty) before=$(stty -g)"
sh -c 'echo "pid=$$"; exec "$@"' - $SHELLFLEET_TEST_WORDS
echo "code=$? after=$(stty -g)"
`;

export interface Left {
  exitCode: number;
  /** The settings of the terminal, before and after. */
  before: string;
  after: string;
}

export class LocalTerminal implements AsyncDisposable {
  readonly #process: CliProcess;
  #seen = 0;

  private constructor(process: CliProcess) {
    this.#process = process;
  }

  static start(
    { redisUrl, namespace, sealKey }: Pick<TestFleet, 'redisUrl' | 'namespace' | 'sealKey'>,
    args: readonly string[],
    more: Record<string, string> = {},
  ): LocalTerminal {
    const env = {
      ...more,
      PATH: process.env.PATH,
      TERM: 'xterm-256color',
      SHELLFLEET_REDIS_URL: redisUrl,
      SHELLFLEET_NAMESPACE: namespace,
      SHELLFLEET_SEAL_KEY: sealKey,
      SHELLFLEET_STATE_DIR: '/nonexistent',
      // No argument of a test contains a space.
      SHELLFLEET_TEST_WORDS: [launcher, ...args].join(' '),
    };
    return new LocalTerminal(follow(spawn('script', ['-qfec', WRAPPER, '/dev/null'], { env, stdio: 'pipe' })));
  }

  /** Everything that this terminal has shown. */
  get shown(): string {
    return this.#process.output().stdout.toString();
  }

  type(text: string): void {
    this.#process.child.stdin?.write(text);
  }

  /** Waits for the text. Later calls search only the output after it. */
  async sees(text: string): Promise<void> {
    const seen = await until(
      () => ({ at: this.shown.indexOf(text, this.#seen), shown: this.shown.slice(this.#seen) }),
      ({ at }) => at >= 0,
    );
    this.#seen = seen.at + text.length;
  }

  /** Changes the size, as a window manager does. */
  async resize(rows: number, columns: number): Promise<void> {
    await run('stty', ['-F', await this.#recorded('tty'), 'rows', String(rows), 'cols', String(columns)]);
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    process.kill(Number(await this.#recorded('pid')), signal);
  }

  async left(): Promise<Left> {
    const exitCode = Number(await this.#recorded('code'));
    return { exitCode, before: await this.#recorded('before'), after: await this.#recorded('after') };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.shown.includes('code=')) await this.signal('SIGTERM');
    await this.#process.end;
  }

  async #recorded(name: string): Promise<string> {
    const found = await until(
      () => new RegExp(`(?:^|[\\s])${name}=(\\S+)\\s`).exec(this.shown)?.[1],
      (value) => value !== undefined,
    );
    return found ?? '';
  }
}
