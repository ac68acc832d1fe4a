import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { stopByPidFile, writePidFile } from '../background-process.ts';
import type { Report } from '../debian-packages.ts';
import { SetupError } from '../setup-error.ts';
import { waitForRedis } from './ping-redis.ts';
import { chooseRedisAddress, type RedisConfig, redisMemoryBytes, redisUrl, writeRedisConfig } from './redis-config.ts';

export type RedisServerOptions = {
  program: string;
  /** Own directory for configuration, data, log and pid file, which only this user can read. */
  directory: string;
  persistent: boolean;
  report: Report;
};

// REDIS-1. At most one redis-server runs on a directory: an earlier orphan is stopped before the next one starts.
// REDIS-2. Address and password stay the same over every restart, so clients reconnect without new settings.
// REDIS-3. After close() no server is started.

const startTimeoutMs = 30_000;
const restartDelayMs = 500;

/** Redis-server that is a child of this process, and is started again when it dies. */
export class RedisServer implements AsyncDisposable {
  readonly url: string;
  readonly #options: RedisServerOptions;
  readonly #address: RedisConfig;
  #child: ChildProcess | undefined;
  #closed = false;
  readonly #endChild = (): void => void this.#child?.kill();

  private constructor(options: RedisServerOptions, address: RedisConfig) {
    this.#options = options;
    this.#address = address;
    this.url = redisUrl(address);
    // Ends the child with this process, however this process ends, because the child would have no supervisor.
    process.once('exit', this.#endChild);
  }

  static async start(options: RedisServerOptions): Promise<RedisServer> {
    const { directory, persistent } = options;
    await stopByPidFile(join(directory, 'redis.pid'), 'redis-server');
    const configPath = join(directory, 'redis.conf');
    const address = await chooseRedisAddress(configPath);
    const maxMemoryBytes = redisMemoryBytes();
    await writeRedisConfig(configPath, {
      ...address,
      dataDirectory: directory,
      bind: '127.0.0.1',
      maxMemoryBytes,
      persistent,
    });
    const server = new RedisServer(options, address);
    try {
      await server.#launch();
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async close(): Promise<void> {
    this.#closed = true;
    process.off('exit', this.#endChild);
    await stopByPidFile(join(this.#options.directory, 'redis.pid'), 'redis-server');
    if (this.#child && this.#child.exitCode === null && this.#child.signalCode === null)
      await once(this.#child, 'exit');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #launch(): Promise<void> {
    const { directory, program, report } = this.#options;
    const log = openSync(join(directory, 'redis.log'), 'a', 0o600);
    // REDIS-3: no await between the last check of #closed and the pid file, by which close() ends the child. A Ctrl-C
    // at the terminal must not reach the child, because this process ends the users of Redis first.
    const child = spawn(program, [join(directory, 'redis.conf')], { detached: true, stdio: ['ignore', log, log] });
    this.#child = child;
    if (child.pid !== undefined) writePidFile(join(directory, 'redis.pid'), child.pid);
    closeSync(log);
    let ended = false;
    child.once('error', () => {
      ended = true;
    });
    child.once('exit', () => {
      ended = true;
    });
    if (!(await waitForRedis(this.#address, startTimeoutMs, () => ended))) throw await this.#startFailed();
    child.once('exit', (exitCode, signal) => {
      if (this.#closed) return;
      report(`Redis ended (${signal ?? exitCode}); starting it again`);
      void this.#relaunch();
    });
  }

  async #relaunch(): Promise<void> {
    while (!this.#closed) {
      await delay(restartDelayMs, undefined, { ref: false });
      if (this.#closed) return;
      try {
        return await this.#launch();
      } catch (error) {
        this.#options.report(error instanceof Error ? error.message : String(error));
      }
    }
  }

  async #startFailed(): Promise<SetupError> {
    const logPath = join(this.#options.directory, 'redis.log');
    this.#child?.kill('SIGKILL');
    const lastWords = (await readFile(logPath, 'utf8').catch(() => '')).trim().split('\n').at(-1);
    return new SetupError(`redis-server did not start: ${lastWords ?? 'it left no log'}`, `read ${logPath}`);
  }
}

/** Ends the redis-server that a dead supervisor has left on a directory. Returns true if there was one. */
export function stopRedisServer(directory: string): Promise<boolean> {
  return stopByPidFile(join(directory, 'redis.pid'), 'redis-server');
}
