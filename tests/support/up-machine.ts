import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { FleetFile } from '@shellfleet/client';
import type { HostInfo } from '@shellfleet/protocol';
import { checkoutRoot } from '@shellfleet/setup';
import { inject } from 'vitest';

const run = promisify(execFile);
const shellfleet = join(checkoutRoot, 'node_modules/.bin/shellfleet');

export async function newMachine(env: NodeJS.ProcessEnv = {}): Promise<UpMachine> {
  return new UpMachine(await mkdtemp(join(tmpdir(), 'sf-up-')), env);
}

/** A machine of a test, as far as `up` and `down` see one: they find a fleet in its state directory. */
export class UpMachine implements AsyncDisposable {
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
  /** Processes of the test itself, each the leader of its group. */
  readonly #besides: ChildProcess[] = [];

  constructor(directory: string, env: NodeJS.ProcessEnv) {
    this.directory = directory;
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('SHELLFLEET_'));
    this.env = { ...Object.fromEntries(inherited), ...env, SHELLFLEET_STATE_DIR: directory };
  }

  /** Runs a command of this checkout, or with `env` of one that is one version newer. */
  run(args: string[], env = this.env) {
    return run(shellfleet, args, { env });
  }

  /** Runs a command of the fleet that `up` has started, from the bundle, which starts in half the time. */
  ask(...args: string[]) {
    return run(process.execPath, ['--no-warnings', inject('programs').cli, ...args], { env: this.env });
  }

  /** Returns the processes that `up` has recorded as started, its Redis included. */
  async startedPids(): Promise<number[]> {
    const { supervisor, workers, api } = await this.#read('up.json');
    const [redis] = (await readFile(join(this.directory, 'redis', 'redis.pid'), 'utf8')).split('\n');
    return [supervisor, ...workers, api].map(({ pid }) => pid).concat(Number(redis));
  }

  /** Returns the process of the HTTP API that `up` has recorded. */
  async apiPid(): Promise<number> {
    return (await this.#read('up.json')).api.pid;
  }

  /** Reads the connection file. */
  connection(): Promise<FleetFile> {
    return this.#read('fleet.json');
  }

  async changeRecord(change: object): Promise<void> {
    const record = await this.#read('up.json');
    await writeFile(join(this.directory, 'up.json'), JSON.stringify({ ...record, ...change }));
  }

  // biome-ignore lint/suspicious/noExplicitAny: files that the program has written.
  async #read(name: string): Promise<any> {
    return JSON.parse(await readFile(join(this.directory, name), 'utf8'));
  }

  /** Returns the hosts that `up` has started. */
  async hosts(): Promise<HostInfo[]> {
    const { stdout } = await this.ask('hosts', 'ls', '--json');
    const all: HostInfo[] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    return all.filter(({ id }) => id !== 'by-hand');
  }

  /** Starts a command line that runs next to the test. */
  follow(args: string[], env = this.env) {
    const child = spawn(shellfleet, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.#besides.push(child);
    const texts = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (data: Buffer) => {
        texts[name] += data.toString();
      });
    const ended = once(child, 'close').then(([exitCode]) => exitCode as number | null);
    return { child, ended, said: () => texts.stderr, printed: () => texts.stdout };
  }

  /** Ends everything that was started on the machine. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const { pid, exitCode } of this.#besides) if (exitCode === null && pid !== undefined) interrupt(pid);
    await this.ask('down');
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Returns the living processes of these. Zombies are left out: some containers have no process that reaps orphans. */
export function living(pids: number[]): number[] {
  return pids.filter((pid) => {
    try {
      return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      return false;
    }
  });
}

/** Interrupts a process and those that it has started, like Ctrl-C at a terminal. */
export function interrupt(pid: number): void {
  try {
    process.kill(-pid, 'SIGINT');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
